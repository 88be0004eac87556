"""For the build: the package's extras, an extra a host, made from ``hosts.toml``; ``pyproject.toml`` has the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HOSTS = "src/hymemory_adapters/hosts.toml"


class HostExtras(MetadataHookInterface):
    """Fill in ``optional-dependencies``. There is no [all], because the hosts' pins exclude each other."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling, for a wheel, an sdist and an editable install alike."""
        hosts = tomllib.loads(Path(self.root, HOSTS).read_text(encoding="utf-8"))
        extras = {name: _requirements(host) for name, host in hosts.items()}
        metadata["optional-dependencies"] = {**extras, **self.config["extras"]}


def _requirements(host: dict[str, Any]) -> list[str]:
    marker = f"; python_version >= '{host['python']}'" if "python" in host else ""
    return [f"{host['distribution']}{host['supported']}{marker}", *host.get("also", ())]

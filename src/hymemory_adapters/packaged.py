"""The TOML files that come with the package, read where they are: in a folder, or in a zip file."""

from __future__ import annotations

import pkgutil
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(name: str) -> dict[str, Any]:
    """Return what the file of that name beside this one says."""
    data = pkgutil.get_data("hymemory_adapters", name)
    assert data is not None, "every loader of a folder or a zip file can read what lies beside a module"
    return tomllib.loads(data.decode())

"""Named writers: the packaged ``writers.toml`` and the user's file of the same form."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hymemory_adapters import packaged
from hymemory_adapters.core.lost import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_WRITER = "hy-memory"
PACKAGED = "writers.toml"

_TABLES = ("no_think", "headers")
_STRINGS = ("base_url", "model", "api_key_env", "form", "ca_bundle")
ENTRY_FIELDS = (*_STRINGS, *_TABLES)


@dataclass(frozen=True)
class Writers:
    """The writers that are known, by name, each with what its entry sets.

    Attributes:
        entries: a writer's name -> its entry.
        file: the user's file, if there is one.
    """

    entries: Mapping[str, Mapping[str, Any]]
    file: Path | None = None

    def fields(self, name: str, environ: Mapping[str, str], *, named_by: str = "the writer") -> dict[str, Any]:
        """Return what a writer's entry sets, as fields of ``WriterSettings``.

        Args:
            name: the writer's.
            environ: the environment, for the writer's key.
            named_by: what named the writer, for the error.

        Raises:
            ConfigurationError: there is no such writer, or its key's variable is not set.
        """
        if name not in self.entries:
            more = f" (and {self.file})" if self.file else "; HYMEMORY_WRITERS_FILE names a file with more"
            raise ConfigurationError(
                f"{named_by}: there is no writer {name!r}; known are: {', '.join(self.entries)}{more}"
            )
        fields = dict(self.entries[name])
        variable = fields.pop("api_key_env", None)
        if variable is not None:
            if not environ.get(variable):
                raise ConfigurationError(f"writer {name!r} takes its key from {variable}, which is not set")
            fields["api_key"] = environ[variable]
        return fields


def load_writers(file: str | None = None) -> Writers:
    """Read the packaged writers, and those of ``file`` over them."""
    if file is None:
        return Writers(_packaged())
    path = Path(file).expanduser()
    return Writers({**_packaged(), **_read(path)}, path)


@lru_cache(maxsize=1)
def _packaged() -> dict[str, dict[str, Any]]:
    return _writers(packaged.read(PACKAGED), PACKAGED)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    where = f"HYMEMORY_WRITERS_FILE={path}"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{where} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{where} is not a TOML file: {error}") from None
    return _writers(document, where)


def _writers(document: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    writers = document.pop("writers", None)
    if not isinstance(writers, dict) or not writers or document:
        raise ConfigurationError(f"{where} must hold tables named [writers.NAME] and nothing else")
    return {name: _checked(entry, f"{where}: writer {name!r}") for name, entry in writers.items()}


def _checked(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where} must be a table")
    if "api_key" in entry:
        raise ConfigurationError(f'{where} holds a key; name the variable that holds it: api_key_env = "..."')
    for key, value in entry.items():
        if key not in ENTRY_FIELDS:
            raise ConfigurationError(f"{where} has an unknown key {key!r}; known are: {', '.join(ENTRY_FIELDS)}")
        if not isinstance(value, dict if key in _TABLES else str):
            kind = "a table" if key in _TABLES else "a string"
            raise ConfigurationError(f"{where}: {key} is {value!r}; it must be {kind}")
    return entry

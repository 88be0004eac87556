"""Settings: which writer writes, where it is served, and how patiently it is asked.

They come from a host's config block, the ``HYMEMORY_*`` environment and the named writers of
``writers.toml``; :func:`resolve` says in which order.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from hymemory_adapters.core.events import say_once
from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.writers import DEFAULT_WRITER, load_writers

Form = Literal["json_schema", "json_object", "prompt"]


class WriterSettings(BaseModel):
    """The writer that is in force, and how it is asked. Frozen and picklable; its repr hides the key.

    The environment variable of a field is ``HYMEMORY_`` and its name in capitals; ``no_think``, ``form``,
    ``headers`` and ``ca_bundle`` are set by a writer's entry or a host's config block.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=())

    writer: str = Field(DEFAULT_WRITER, description="the name of a writer")
    base_url: str = Field("http://127.0.0.1:8000/v1", description="an http:// or https:// URL, usually ending in /v1")
    model: str = Field(DEFAULT_WRITER, min_length=1, description="a model that the server serves")
    api_key: SecretStr | None = Field(None, repr=False, description="the server's key: ASCII without white space")
    no_think: dict[str, Any] = Field(default_factory=dict, description="a table that is merged into the request body")
    form: Form = Field("json_schema", description="json_schema, json_object or prompt")
    headers: dict[str, str] = Field(default_factory=dict, repr=False, description="a table of HTTP headers")
    ca_bundle: str | None = Field(None, description="the path of a file of CA certificates")
    attempts: int = Field(3, ge=1, le=10, description="a whole number from 1 to 10")
    constrain: Literal["always", "retry", "off"] = Field("always", description="always, retry or off")
    max_tokens: int = Field(4096, ge=1, description="a whole number of tokens, at least 1")
    max_tokens_ceiling: int = Field(16384, ge=1, description="a whole number of tokens, at least 1")
    timeout: float = Field(120, gt=0, le=86400, description="seconds, more than 0")
    deadline: float = Field(600, gt=0, le=86400, description="seconds, more than 0")
    retry_seconds: float = Field(10, ge=0, le=86400, description="seconds, at least 0")
    concurrency: int = Field(32, ge=1, le=10000, description="a whole number from 1 to 10000")
    journal: str | None = Field(None, description="the path of a file; its folder must exist")
    journal_content: Literal["full", "off"] = Field("full", description="full or off")
    sources: dict[str, str] = Field(default_factory=dict, repr=False, exclude=True)
    """Where each field's value came from, in words."""

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:  # a wrong port raises
            raise ValueError("not an http(s) URL")
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        return urlunsplit(parts._replace(path=path))

    @field_validator("api_key", mode="after")
    @classmethod
    def _is_header_text(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value().strip() if key else ""  # keys read from files end in a line break
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("not fit for a header")
        return SecretStr(text) if text else None

    @field_validator("journal", "ca_bundle", mode="before")
    @classmethod
    def _is_path(cls, path: Any) -> Any:
        return str(Path(path).expanduser()) if isinstance(path, (str, os.PathLike)) else path

    @model_validator(mode="after")
    def _folders_exist(self) -> WriterSettings:
        if self.journal is not None and not Path(self.journal).absolute().parent.is_dir():
            raise ValueError("journal")
        if self.ca_bundle is not None and not Path(self.ca_bundle).is_file():
            raise ValueError("ca_bundle")
        return self

    @property
    def shown_url(self) -> str:
        """The endpoint's URL without user name and password: fit for a message."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def source(self, field: str) -> str:
        """Say in words where a field's value came from."""
        return self.sources.get(field, "the default")


FIELDS = tuple(name for name in WriterSettings.model_fields if name != "sources")
_BY_ENTRY_ONLY = ("no_think", "form", "headers", "ca_bundle")
VARIABLES = {name: f"HYMEMORY_{name.upper()}" for name in FIELDS if name not in _BY_ENTRY_ONLY}
_OTHER_VARIABLES = ("HYMEMORY_WRITERS_FILE", "HYMEMORY_ENABLE", "HYMEMORY_AUTOLOAD")

_Layer = tuple[str, Mapping[str, Any]]


def resolve(
    block: Mapping[str, Any] | None = None,
    *,
    takeover: bool = False,
    environ: Mapping[str, str] | None = None,
) -> WriterSettings:
    """Find the settings in force.

    The order, strongest first, is: the config block, ``HYMEMORY_*``, the writer's entry, the default. If
    ``HYMEMORY_WRITER`` is set, what that writer's entry says comes before all of them. In a takeover the
    block, which belongs to another provider, is not looked at.

    Args:
        block: fields that the host's config names for this provider, by their names here.
        takeover: whether the host's config names another provider.
        environ: the environment; ``os.environ`` if not given.

    Raises:
        ConfigurationError: a value is wrong; the message names it, where it stands and what is allowed.
    """
    environ = os.environ if environ is None else environ
    check_names(environ)
    given = {} if takeover else {key: value for key, value in (block or {}).items() if value is not None}
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise ConfigurationError(f"unknown key {unknown[0]!r} in the config block; known are: {', '.join(FIELDS)}")
    variables = {name: environ[var] for name, var in VARIABLES.items() if environ.get(var, "").strip()}
    chosen = variables.pop("writer", None)
    name = chosen or str(given.get("writer", DEFAULT_WRITER))
    entry = load_writers(environ.get("HYMEMORY_WRITERS_FILE", "").strip() or None).fields(
        name, environ, named_by="HYMEMORY_WRITER" if chosen else "writer in the config block"
    )

    named: _Layer = (f"writer {name!r}", entry)
    env: _Layer = ("the environment", variables)
    config: _Layer = ("the config block", given)
    layers = (named, config, env) if chosen else (config, env, named)

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, fields in layers:
        for field, value in fields.items():
            if field not in values:
                values[field] = value
                sources[field] = VARIABLES[field] if fields is variables else f"{field} in {source}"
    if chosen and "base_url" in entry and "api_key" not in entry:
        # The block's key belongs to another server than the one this writer names.
        values.pop("api_key", None)
        if "api_key" in variables:
            values["api_key"] = variables["api_key"]
    values["writer"] = name
    sources["writer"] = "HYMEMORY_WRITER" if chosen else sources.get("writer", "the default")
    try:
        return WriterSettings(**values, sources=sources)
    except ValidationError as error:
        raise _named(error, values, sources) from None


BUDGETS = ("max_tokens", "max_completion_tokens")
"""What OpenAI calls the output budget in a request's body."""


def changed(base: WriterSettings, block: Mapping[str, Any], *, where: str) -> WriterSettings:
    """Change what the block names; the same object if that is nothing.

    Args:
        base: the settings in force.
        block: fields by their names; ``None`` names nothing.
        where: where the block stands, in words.

    Raises:
        ConfigurationError: a value is wrong.
    """
    changes = {key: value for key, value in block.items() if value is not None and value != getattr(base, key)}
    if not changes:
        return base
    sources = base.sources | {key: f"{key} in {where}" for key in changes}
    values = {**dict(base), **changes}
    try:
        return WriterSettings(**{**values, "sources": sources})
    except ValidationError as error:
        raise _named(error, values, sources) from None


def budgets(base: WriterSettings, body: Mapping[str, Any], *, where: str) -> dict[str, int]:
    """Read the output budgets that a request's body names, which may be strings: from environments and YAML files.

    Args:
        base: the settings in force.
        body: the body, as it would go to OpenAI.
        where: where it stands, in words.

    Returns:
        tokens, by the names that the body has for them.

    Raises:
        ConfigurationError: a value is no budget.
    """
    given = {name: body[name] for name in BUDGETS if body.get(name) is not None}
    return {name: changed(base, {"max_tokens": value}, where=where).max_tokens for name, value in given.items()}


def check_names(environ: Mapping[str, str]) -> None:
    """Refuse what HYMEMORY_ENABLE cannot take over; point out variables that nobody reads.

    Raises:
        ConfigurationError: HYMEMORY_ENABLE names a host that is not known, or that cannot be taken over.
    """
    from _hymemory_autoload import wrong_names

    wrong = wrong_names(environ)
    if wrong:
        raise ConfigurationError(wrong)
    read = {*VARIABLES.values(), *_OTHER_VARIABLES}
    for variable in environ:
        if variable.startswith("HYMEMORY_") and variable not in read:
            close = difflib.get_close_matches(variable, read, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            say_once(f"variable:{variable}", f"the environment variable {variable} is not read by anything.{hint}")


def _named(error: ValidationError, values: Mapping[str, Any], sources: Mapping[str, str]) -> ConfigurationError:
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else str(first["msg"]).rpartition(" ")[2]
    where = sources.get(field, field)
    allowed = WriterSettings.model_fields[field].description
    shown = "(hidden)" if field in ("api_key", "headers") else repr(values.get(field))
    shown = re.sub(r"//[^/@]*@", "//(hidden)@", shown)  # a URL's user name and password
    return ConfigurationError(f"{where} is {shown}; it must be {allowed}")

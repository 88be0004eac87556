"""The documents that trustcall shows in a request, and the JSON patches that a reply makes of them.

trustcall shows Python's own spelling of each document, on one line: a line break inside of it is an escape, so no
text in a document can pass for another one.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hymemory_adapters.core.request import Request

_OPENING = "<existing>\n"
_LISTED = re.compile(r'^<instance id=(.*) schema_type="(.*)">\n(.*)\n</instance>$', re.MULTILINE)
_BY_SCHEMA = re.compile(r"^<schema id=(.*)>\n<instance>\n(.*)\n</instance>", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be patched.

    Attributes:
        kind: the name of its schema.
        value: the document; ``None`` where it cannot be read.
    """

    kind: str
    value: Any = None


def documents_in(request: Request) -> dict[str, Document]:
    """Return the documents of an update by id; none where there is nothing to be read."""
    if not request.messages:
        return {}
    content = request.messages[0].get("content") or ""
    parts = content if isinstance(content, list) else [content]
    text = "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts)
    shown = text.rpartition(_OPENING)[2] if _OPENING in text else ""
    listed = {found[1]: Document(found[2], _read(found[3])) for found in _LISTED.finditer(shown)}
    return listed or {found[1]: Document(found[1], _read(found[2])) for found in _BY_SCHEMA.finditer(shown)}


def _read(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def last_tool_call(request: Request) -> Any:
    """Return the arguments of the tool call that a repair is about; ``None`` where they cannot be read."""
    for message in reversed(request.messages):
        for call in message.get("tool_calls") or ():
            try:
                return json.loads(call["function"]["arguments"])
            except (KeyError, TypeError, ValueError):
                return None
    return None


def patched(value: Any, patches: Sequence[Mapping[str, Any]]) -> Any:
    """Apply patches as trustcall does.

    Raises:
        Exception: they do not apply.
    """
    import jsonpatch  # comes with trustcall

    own = getattr(sys.modules.get("trustcall._base"), "_apply_patch", None)  # it mends one mistake more
    return (own or jsonpatch.apply_patch)(deepcopy(value), [dict(patch) for patch in patches])

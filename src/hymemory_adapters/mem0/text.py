"""What Mem0 asks for in free text: its procedural memory, and what it cannot ask of Hy-Memory, image descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.mem0.installed import mentions

# ``memory/main.py`` ``_create_procedural_memory`` (0.1.118 to 2.2.1); the system prompt before it can be the app's.
PROCEDURAL = "Create procedural memory of the above conversation."
_FENCED = re.compile(r"```\w*\n(?P<text>(?:(?!```).)*)\n```", re.DOTALL)


def procedural_call() -> WriteCall:
    """Build the row. Mem0 stores the text as it is, so an empty or cut one must not reach it."""
    contract = Contract(normalise=(("fence", _unfenced),), render=_as_mem0_keeps_it)

    def recognise(request: Request) -> Contract | None:
        if request.tools or request.response_format or len(request.messages) < 2:
            return None
        return contract if request.roles[-1] == "user" and request.text(-1) == PROCEDURAL else None

    return WriteCall(
        "mem0.procedural",
        recognise,
        OnLost.RAISE,
        summary="sums up what an agent did, as one memory",
    )


def _unfenced(text: str) -> str:
    """One fence around the whole text, which Mem0 1.x and 2.x would drop, and 0.1 would store."""
    fenced = _FENCED.fullmatch(text)
    return fenced["text"] if fenced else text


def _as_mem0_keeps_it(text: str) -> str:
    """Put a fence around a text of which Mem0 would take the first and the last line for one: it drops ours instead.

    A text may begin with one block of code and end with another. Mem0 0.1 drops no fence.
    """
    from mem0.memory.main import Memory
    from mem0.memory.utils import remove_code_blocks

    if not mentions(Memory._create_procedural_memory, "remove_code_blocks"):
        return text
    fenced = f"```\n{text}\n```"
    return fenced if remove_code_blocks(text) != text == remove_code_blocks(fenced) else text


IMAGE = "an image"
_KINDS = {"image_url": IMAGE, "image": IMAGE, "input_image": IMAGE, "input_audio": "a sound", "video_url": "a video"}


def beside_text(messages: Sequence[Message]) -> str:
    """What a message holds beside text, in words; ``""`` if it is text alone."""
    kinds = (part.get("type") for message in messages for part in _parts(message))
    return next((_KINDS.get(str(kind), "a part that is no text") for kind in kinds if kind != "text"), "")


def words_of(messages: Sequence[Message]) -> str | None:
    """The text of a request that asks to describe a message of text parts alone; ``None`` for any other.

    With ``enable_vision``, Mem0 asks for the description of every message whose content is a list, and puts the
    description in its place (``memory/utils.py`` ``parse_vision_messages``). Words need none.
    """
    if len(messages) != 1 or not (parts := _parts(messages[0])) or beside_text(messages):
        return None
    return "\n".join(str(part.get("text", "")) for part in parts)


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []

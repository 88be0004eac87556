"""The summary of ``ChatSummaryMemoryBuffer`` (deprecated, in every version): it takes the place of old messages.

Measured: where the request raises, the newest messages are gone already (``get`` pops them from the store's own
list); where the reply is empty, the old ones are. So a summary that is lost is the conversation itself, word for word.
"""

from __future__ import annotations

from typing import Any

from hymemory_adapters.core.request import Request
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall

_SAID = "\u2603"
_HEADING = "Transcript so far:"


def summary_call(buffer: Any, message: Any) -> WriteCall:
    """Build the row.

    Args:
        buffer: the installed ``ChatSummaryMemoryBuffer``.
        message: the installed ``ChatMessage``.
    """
    # The instruction before it can be the app's own; this is what the class builds around the conversation.
    shown = buffer._get_prompt_to_summarize(None, [message(role="user", content=_SAID)])
    opening, _, closing = shown.partition(f"user: {_SAID}")

    def recognise(request: Request) -> Contract | None:
        if request.roles != ("system", "user") or request.tools or request.response_format:
            return None
        text = request.text(1)
        if not (text.startswith(opening) and text.endswith(closing)):
            return None
        transcript = text.removeprefix(opening).removesuffix(closing).strip()
        return Contract(render=str, fallback=lambda _: f"{_HEADING}\n\n{transcript}")

    return WriteCall(
        "llamaindex.summary",
        recognise,
        OnLost.SALVAGE,
        summary="sums up the messages that leave a ChatSummaryMemoryBuffer; lost, they stay word for word",
    )

"""LangMem's thread extractor: one document about a whole conversation (``create_thread_extractor``, 0.0.30).

Where the reply is text, LangMem crashed (``IndexError``); an empty summary was taken; of several it takes the first.
An exception reaches the app, which has the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.tools import ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.trustcall import Path, blank, each_call, like, tool_names

_DEFAULT_NAME = "SummarizeThread"
_ASKS = "Call the provided tool based on the conversation below:\n\n<conversation>"  # it stands in no constant


def thread_call() -> WriteCall:
    """Build the row; it goes before trustcall's own."""
    return WriteCall(
        "langmem.thread",
        _recognise,
        OnLost.RAISE,
        summary="makes one document of a whole conversation (create_thread_extractor)",
        typical=like(SummarizeThread={"title": {"type": "string"}, "summary": {"type": "string"}}),
    )


def _recognise(request: Request) -> Contract | None:
    tools = Tools.of(request) if request.stage == "extract" else None
    if tools is None or not (tool_names(request) == {_DEFAULT_NAME} or request.text(-1).startswith(_ASKS)):
        return None
    one = Tools(tools.functions, at_least=1, at_most=1)
    return tool_contract(request, one, check=lambda answer: each_call(answer, _says_something))


def _says_something(call: ToolCall, path: Path) -> Sequence[Problem]:
    if call.name != _DEFAULT_NAME:
        return blank(call, path)
    return [
        Problem("blank", "must not be blank", json_path((*path, key)))
        for key, text in call.arguments.items()
        if isinstance(text, str) and not text.strip()
    ]

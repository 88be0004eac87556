"""Tools and a ``response_format`` in one request: an agent whose last answer is structured (``ProviderStrategy``).

The answer is one more tool to the model, which may call no other beside it; to LangChain it is the text of the
message, as OpenAI would have sent it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import misfits
from hymemory_adapters.core.tools import Answer, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract

_SAYS = "Gives the final answer, in place of text. Call it alone, when there is nothing left to call before."


def agent_contract(request: Request, tools: Tools, check: Callable[[Answer], Sequence[Problem]]) -> Contract:
    """Build the contract of a request that may be answered by calls, or else by text or by what its format says.

    Args:
        request: the host's.
        tools: what it may call.
        check: what is wrong with the calls of the host's own tools.
    """
    if tools.at_least or not request.wants_json:
        return tool_contract(request, tools, check=check)
    answer = getattr(request, "answer", None)
    name = "answer"
    while any(function.get("name") == name for function in tools.functions):
        name += "_"
    function = {"name": name, "description": _SAYS, "parameters": _schema(request)}
    both = Tools((*tools.functions, function), at_least=1, at_most=tools.at_most)

    def checked(reply: Answer) -> Sequence[Problem]:
        if not any(call.name == name for call in reply.calls):
            return check(reply)
        if len(reply.calls) > 1:
            return [Problem("answer", f'call "{name}" alone, or not yet', "$.tool_calls")]
        return misfits(answer, reply.calls[0].arguments, ("tool_calls", 0, "arguments"))

    def render(reply: Answer) -> Answer:
        call = reply.calls[0]
        return Answer((), armoured(call.arguments)) if call.name == name else reply

    return tool_contract(request, both, check=checked, render=render)


def _schema(request: Request) -> Any:
    wanted = (request.response_format or {}).get("json_schema") or {}
    return wanted.get("schema") or {"type": "object"}

"""The table of LangChain's and LangMem's calls: what they ask, and what the reply must be.

LangMem's long-term writers are all trustcall, that is tool calls. What no prompt replaces is the names of
trustcall's own tools, and the names of the nodes of its graph, which LangGraph tells with each call.

=============================  =======================================================================
call                           source (langmem 0.0.30, trustcall 0.0.39)
=============================  =======================================================================
``langmem.thread``             ``langmem/knowledge/extraction.py`` ``create_thread_extractor``
``langmem.reflect``            ``langmem/prompts`` ``gradient.py``, ``metaprompt.py``: thinks, recommends
``langmem.prompt``             there: the new prompt
``langmem.prompt_memory``      ``langmem/prompts/stateless.py``
``langmem.classify``           ``langmem/prompts/optimization.py`` ``create_multi_prompt_optimizer``
``langmem.repair``             ``trustcall/_base.py`` ``_Patch``: a tool call that did not validate
``langmem.update``             ``trustcall/_base.py`` ``_ExtractUpdates``: with existing documents
``langmem.extract``            ``trustcall/_base.py`` ``_Extract``: without
``langmem.manage_memory``      an agent with ``langmem/knowledge/tools.py`` ``create_manage_memory_tool``
``langmem.summary``            ``langmem/short_term/summarization.py``
``langchain.summary``          ``langchain/agents/middleware/summarization.py`` (1.0 and later)
``langchain.classic_summary``  ``langchain_classic/memory`` (``langchain/memory`` before 1.0)
``langchain.entities``         there, ``entity.py``
``langchain.entity_summary``   there, ``entity.py``
=============================  =======================================================================

``langmem.search``, ``langchain.tools`` (any other request with tools) and ``langchain.structured`` write no memory,
but are constrained, validated and asked again alike. Plain chat passes through.
"""

from __future__ import annotations

from functools import lru_cache

from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import misfits
from hymemory_adapters.core.tools import Answer, Tools
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.answer_tool import agent_contract
from hymemory_adapters.langchain.classic import classic_calls
from hymemory_adapters.langchain.memory_tool import memory_tool_call, search_call
from hymemory_adapters.langchain.optimizers import optimizer_calls
from hymemory_adapters.langchain.structured import structured_call
from hymemory_adapters.langchain.summaries import summary_calls
from hymemory_adapters.langchain.threads import thread_call
from hymemory_adapters.langchain.trustcall import trustcall_calls


@lru_cache(maxsize=1)
def calls() -> tuple[WriteCall, ...]:
    """Return the table: the rows of what is installed."""
    return (
        thread_call(),
        *optimizer_calls(),
        *trustcall_calls(),
        memory_tool_call(),
        search_call(),
        *summary_calls(),
        *classic_calls(),
        _tools_call(),
        structured_call(),
    )


def _tools_call() -> WriteCall:
    return WriteCall(
        "langchain.tools",
        _any_tools,
        OnLost.RAISE,
        summary="asks for tool calls, or an answer in words where it may be one",
        writes=False,
    )


def _any_tools(request: Request) -> Contract | None:
    if not request.tools:
        return None
    foreign = [str(tool.get("type")) for tool in request.tools if "function" not in tool]
    if foreign:
        raise ConfigurationError(f"tools of the type {foreign[0]!r} are run by OpenAI's servers: give functions")
    tools = Tools.of(request, text=True)
    if tools is None:
        return None
    answer = None if request.wants_json else getattr(request, "answer", None)

    def check(reply: Answer) -> list[Problem]:
        found = (
            misfits(answer, call.arguments, ("tool_calls", index, "arguments"), python=True)
            for index, call in enumerate(reply.calls)
        )
        return [problem for problems in found for problem in problems]

    return agent_contract(request, tools, check)

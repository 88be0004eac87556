"""The table of LlamaIndex's calls: what it asks, and what the reply must be.

========================  ==========================================================================
call                      source (llama-index-core 0.12.52 to 0.14.25)
========================  ==========================================================================
``llamaindex.facts``      ``memory/memory_blocks/fact.py`` ``_aput``, first request (``facts.py``)
``llamaindex.condense``   the same, second request, when there are more than ``max_facts``
``llamaindex.summary``    ``memory/chat_summary_memory_buffer.py`` (``summary.py``)
========================  ==========================================================================

The first two are also what ``HyMemoryFactExtractionBlock`` asks. ``llamaindex.tools`` (any request with tools) and
``llamaindex.structured`` write no memory, but are constrained, validated and asked again alike. Plain chat, and with
it a template of the app's own in another form, passes through.
"""

from __future__ import annotations

from functools import lru_cache

from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import structured_contract
from hymemory_adapters.core.tools import Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall


@lru_cache(maxsize=1)
def calls() -> tuple[WriteCall, ...]:
    """Return the table for the installed LlamaIndex."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import ChatSummaryMemoryBuffer
    from llama_index.core.memory.memory_blocks import fact

    from hymemory_adapters.llamaindex.facts import facts_calls
    from hymemory_adapters.llamaindex.summary import summary_call

    return (
        *facts_calls(fact),
        summary_call(ChatSummaryMemoryBuffer, ChatMessage),
        WriteCall(
            "llamaindex.tools",
            _with_tools,
            OnLost.RAISE,
            summary="asks for tool calls, or an answer in words where it may be one",
            writes=False,
        ),
        WriteCall(
            "llamaindex.structured",
            structured_contract,
            OnLost.RAISE,
            summary="asks for one JSON value of a schema (structured_predict, as_structured_llm)",
            writes=False,
        ),
    )


def _with_tools(request: Request) -> Contract | None:
    tools = Tools.of(request, text=True)
    return None if tools is None else tool_contract(request, tools)

"""Summaries that take the place of a conversation, in free text: LangMem's short-term memory, LangChain's middleware.

Both take whatever comes for the summary. Measured, sync and async alike:

``langmem.short_term`` (0.0.30: ``summarize_messages``, ``SummarizationNode``)
    an empty, cut or tool-call-only reply becomes the running summary, and its messages count as summed up. An
    exception reaches the app, and the running summary and the messages stay.
``SummarizationMiddleware`` (langchain 1.x)
    an empty or cut reply takes the place of the history. Of an exception, 1.0.8 to 1.2.10 make a summary: "Error
    generating summary: ..."; so there a lost summary is the conversation itself, word for word. 1.5.2 asks three
    times and raises, and the history stays.

They are known by the packages' own prompts. With an app's own prompt the middleware is known by the name of its
node; LangMem's summaries are not known then, for nothing else tells them from a chat: they are passed on as they are.
"""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from typing import Any

from hymemory_adapters.core.request import Request
from hymemory_adapters.core.tools import Answer
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.installed import Template, constant, source_of, spec_of, template

_LANGMEM = "langmem.short_term.summarization"
_MIDDLEWARE = "langchain.agents.middleware.summarization"
_NODE = "SummarizationMiddleware.before_model"
_OPENING = "<messages>"  # deepagents puts instructions of its own in front of it
_SWALLOWS = "Error generating summary"


def summary_calls() -> tuple[WriteCall, ...]:
    """Build the rows of the packages that are installed; none of them is imported."""
    rows = []
    if spec_of(_LANGMEM):
        rows.append(
            WriteCall(
                "langmem.summary",
                _langmem_summary,
                OnLost.RAISE,
                summary="sums up old messages, or extends their summary (summarize_messages, SummarizationNode)",
            )
        )
    if spec := spec_of(_MIDDLEWARE):
        rows.append(
            WriteCall(
                "langchain.summary",
                _middleware_summary,
                OnLost.SALVAGE if _swallows(spec) else OnLost.RAISE,
                summary="sums up the history of an agent (SummarizationMiddleware)",
            )
        )
    return tuple(rows)


def text_contract(fallback: str | None = None) -> Contract:
    """Ask for text: not empty, not cut, without thinking.

    Args:
        fallback: the text that goes back when the call is lost, where its row salvages.
    """
    return Contract(render=as_text, fallback=None if fallback is None else lambda _: fallback)


def as_text(text: Any) -> Answer:
    """Hand a text back as it is."""
    return Answer((), str(text))


def asks_for_text(request: Request) -> bool:
    """Whether a request has neither tools nor a format."""
    return bool(request.messages) and not request.tools and not request.response_format


def _swallows(spec: ModuleSpec) -> bool:
    """Whether the installed middleware makes a summary of an exception; unread, it had better be thought to."""
    source = source_of(spec)
    return not source or _SWALLOWS in source


def _langmem_summary(request: Request) -> Contract | None:
    if not asks_for_text(request) or len(request.messages) < 2 or request.roles[-1] != "user":
        return None
    said = request.text(-1)
    asked = filter(None, map(_last_template, ("DEFAULT_INITIAL_SUMMARY_PROMPT", "DEFAULT_EXISTING_SUMMARY_PROMPT")))
    return text_contract() if any(_is(each, said) for each in asked) else None


def _last_template(name: str) -> Template | None:
    """The last message of one of LangMem's prompts."""
    messages = getattr(constant(_LANGMEM, name), "messages", None)
    text = getattr(getattr(messages[-1], "prompt", None), "template", None) if messages else None
    return template(text) if isinstance(text, str) else None


def _is(each: Template, said: str) -> bool:
    return each.frames(said) if each.fields else said == each.literals[0]


def _middleware_summary(request: Request) -> Contract | None:
    prompt = constant(_MIDDLEWARE, "DEFAULT_SUMMARY_PROMPT")
    if not isinstance(prompt, str) or not asks_for_text(request) or request.roles != ("user",):
        return None
    said = request.text(0)
    history = _history(template(prompt), said)
    if history is None and request.stage != _NODE:
        return None
    return text_contract(said if history is None else history)


def _history(prompt: Template, said: str) -> str | None:
    """The messages in the middleware's own prompt; ``None`` where it is another."""
    if prompt.fields != ("messages",):
        return None
    before, after = prompt.literals
    instructions, opening, rest = before.rpartition(_OPENING)
    marker, after = f"{opening}{rest}", after.rstrip()
    if not (said.startswith(instructions.rstrip()) and said.endswith(after) and marker in said):
        return None
    return said.partition(marker)[2].removesuffix(after).strip()

"""langchain-classic's memories (``langchain.memory`` before 1.0): what they ask, and what becomes of a lost reply.

Measured (langchain 0.3.30, langchain-classic 1.0.0 and 1.0.8), where the reply is empty or cut: it takes the place of
the summary, of the fact, or becomes the name of an entity. Where the request raises:

``ConversationSummaryMemory``
    keeps its summary, and never sums up the two messages that were to go in.
``ConversationSummaryBufferMemory``
    has taken the messages out before it asks, and has lost them. It asks in the same words as the other.
``ConversationEntityMemory``
    keeps the facts; the entities that come after are not asked about, and what was said is gone from the next turn.
    Before an answer, when it looks for names, the app gets the exception, and nothing is lost.

So a lost summary is the old one and the new lines, word for word, and so is a lost fact. Both stand in the prompt of
the next, which sums them up. Asked by ``asave_context``, the first and the last write nothing at all: that is theirs.

With an app's own prompts nothing tells these requests from a chat: they are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.tool_messages import noted
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.installed import Template, constant, spec_of, template
from hymemory_adapters.langchain.summaries import as_text, asks_for_text, text_contract

_MODULES = ("langchain_classic.memory.prompt", "langchain.memory.prompt")
_NOTHING = "NONE"
_NOTE = (
    'Write the output as one JSON object in place of a comma-separated list: {"entities": ["...", "..."]}, and '
    'nothing else. If there is nothing of note to return: {"entities": []}.'
)
_ENTITIES = Schema(
    {
        "type": "object",
        "properties": {"entities": {"type": "array", "items": {"type": "string"}, "maxItems": LIST_BOUND}},
        "required": ["entities"],
        "additionalProperties": False,
    },
    name="entities",
)


def classic_calls() -> tuple[WriteCall, ...]:
    """Build the rows, if there are such memories; they are not imported."""
    if not any(map(spec_of, _MODULES)):
        return ()
    return (
        WriteCall(
            "langchain.classic_summary",
            _summary,
            OnLost.SALVAGE,
            summary="adds lines to the summary of a conversation (ConversationSummaryMemory and -SummaryBufferMemory); "
            "lost, they are added word for word",
        ),
        WriteCall(
            "langchain.entities",
            _entities,
            OnLost.RAISE,
            summary="names the entities in what was said last (ConversationEntityMemory)",
            typical=_ENTITIES,
        ),
        WriteCall(
            "langchain.entity_summary",
            _entity_summary,
            OnLost.SALVAGE,
            summary="updates what is known of one entity (ConversationEntityMemory); lost, what was said last is added",
        ),
    )


def _asked(request: Request, name: str, fields: tuple[str, ...]) -> Iterator[tuple[Template, str]]:
    """The installed prompt of that name, and what stands in it, if that is what a request asks."""
    if not asks_for_text(request) or request.roles != ("user",):
        return
    text = request.text(0)
    for module in _MODULES:
        source = getattr(constant(module, name), "template", None)
        if isinstance(source, str) and template(source).fields == fields and template(source).frames(text):
            yield template(source), template(source).body(text)


def _summary(request: Request) -> Contract | None:
    for prompt, body in _asked(request, "SUMMARY_PROMPT", ("summary", "new_lines")):
        summary, _, lines = body.partition(prompt.literals[1])
        return text_contract(_joined(summary, lines))
    return None


def _joined(known: str, lines: str) -> str:
    return "\n".join(filter(None, (known.strip(), lines.strip())))


def _entity_summary(request: Request) -> Contract | None:
    fields = ("history", "entity", "entity", "summary", "input")
    for prompt, body in _asked(request, "ENTITY_SUMMARIZATION_PROMPT", fields):
        return text_contract(_known_and_said(prompt, body))
    return None


def _known_and_said(prompt: Template, body: str) -> str | None:
    """The fact and the line that was said; ``None`` where what the user wrote makes it doubtful which is which."""
    _, to_entity, to_name, to_summary, to_line, _ = prompt.literals
    before, _, line = body.rpartition(to_line)
    entity, _, rest = before.rpartition(to_entity)[2].partition(to_name)
    heading = f"{entity}{to_summary}"
    speaker = to_line.rpartition("\n")[2]  # "Human: "
    return _joined(rest.removeprefix(heading), f"{speaker}{line}") if rest.startswith(heading) else None


def _entities(request: Request) -> Contract | None:
    for _ in _asked(request, "ENTITY_EXTRACTION_PROMPT", ("history", "input")):
        return Contract(
            schema=_ENTITIES,
            normalise=(("entity_names", _tidied),),
            render=lambda value: as_text(", ".join(value["entities"]) or _NOTHING),
            messages=noted(request.messages, _NOTE),
        )
    return None


def _tidied(value: Any) -> Any:
    """Names that survive the host's list: without commas, and none that is empty, "NONE" or there twice."""
    names = value.get("entities") if isinstance(value, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return value
    plain = (" ".join(name.replace(",", " ").split()) for name in names)
    tidy = list(dict.fromkeys(name for name in plain if name and name.upper() != _NOTHING))
    return value if tidy == names else {**value, "entities": tidy}

"""A typical request of each of Mem0's write calls, made by the builders of the *installed* Mem0.

Nothing here is sent for a write: it tells ``hymemory doctor`` how long Mem0's prompts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hymemory_adapters.core.request import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SAID = [{"role": "user", "content": "I moved to Pune, and I drink black coffee every morning."}]
_FACTS = ["Moved to Pune", "Drinks black coffee every morning"]
_MEMORIES = [
    {"id": str(index), "text": text}
    for index, text in enumerate(("Lives in Oslo", "Likes tea", "Has a dog", "Is training for a half marathon"))
]


def typical() -> Mapping[str, Sequence[Message]]:
    """Return the messages of a typical request, by write call."""
    from mem0.configs import prompts
    from mem0.memory import utils

    talk = utils.parse_messages(_SAID)
    if additive := getattr(prompts, "generate_additive_extraction_prompt", None):
        asked = additive(existing_memories=_MEMORIES, new_messages=talk)
        return {"mem0.additive": _messages(system=prompts.ADDITIVE_EXTRACTION_PROMPT, user=asked)}
    system, user = utils.get_fact_retrieval_messages(talk)
    return {
        "mem0.facts": _messages(system=system, user=user),
        "mem0.update": _messages(user=prompts.get_update_memory_messages(_MEMORIES, _FACTS)),
    }


def _messages(**contents: str) -> list[Message]:
    return [{"role": role, "content": content} for role, content in contents.items()]

"""The messages of a write call: the host's as they are, and after them what was said to failed replies.

Asking again only appends, so the server finds the long prompt in its prefix cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from hymemory_adapters.core.budget import Budget, estimated_prompt
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Message

SHOWN_REPLY = 1000
"""Characters of a failed reply that the model is shown again."""


class Conversation:
    """One write call's messages.

    Attributes:
        messages: the host's, never changed.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self._said: list[Message] = []
        self._prompt_tokens: int  # of the host's messages, by the server's count; known with the first reply

    def ask_again(self, reply: Reply, problems: Sequence[Problem]) -> None:
        """Append a failed reply, and what is wrong with it."""
        if not self._said:
            self._prompt_tokens = reply.tokens_in or estimated_prompt(self.messages)
        self._said += [
            {"role": "assistant", "content": _shown(reply)},
            {"role": "user", "content": _feedback(problems)},
        ]

    def fitted(self, budget: Budget, context: int | None) -> list[Message]:
        """Return what to send, and keep the budget within the context, where it is known.

        Where the failed replies leave no room for another, what was wrong with the last one has to do.
        """
        if not self._said and context is not None:
            budget.fit(context, self.guessed_prompt(context))
        elif self._said and not self._fits(self._said, budget, context):
            self._fits(self._said[-1:], budget, context)
            return [*self.messages, *self._said[-1:]]
        return [*self.messages, *self._said]

    def guessed_prompt(self, context: int) -> int:
        """Estimate the prompt's tokens: half the context at most, so that a bad estimate refuses no write."""
        return min(estimated_prompt(self.messages), context // 2)

    def _fits(self, said: Sequence[Message], budget: Budget, context: int | None) -> bool:
        prompt = self._prompt_tokens + estimated_prompt(said)
        return context is None or budget.fit(context, prompt)


def _shown(reply: Reply) -> str:
    # Half a surrogate pair cannot be sent.
    text = (reply.text or "").strip().encode("utf-8", "replace").decode()
    if not text:
        return "(an empty reply)"
    return text if len(text) <= SHOWN_REPLY else f"{text[:SHOWN_REPLY]} [...]"


def _feedback(problems: Sequence[Problem]) -> str:
    lines = "\n".join(f"- {problem}" for problem in problems)
    return f"That reply cannot be used:\n{lines}\nAnswer the request above again, whole, in the form it asks for."

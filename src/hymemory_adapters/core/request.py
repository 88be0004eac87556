"""What the host asked of its LLM, in no host's words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Message = Mapping[str, Any]
"""A chat message as it goes on the wire: ``{"role": ..., "content": ...}`` and whatever else the host set."""


@dataclass(frozen=True)
class Request:
    """One LLM request of a host, before anything is done to it.

    Attributes:
        messages: the host's messages. They reach the wire as they are.
        response_format: the host's own ``response_format``, if it sent one.
        tools: the host's tools in OpenAI's form, if it sent any.
        tool_choice: the host's ``tool_choice``, if it sent one.
        sampling: ``temperature``, ``top_p`` and the like: what the host wants the sampler to do.
        max_tokens: the host's output budget in tokens, if it has one.
        extra_body: fields outside OpenAI's API that the host adds to the request body.
        stage: a name that the host itself gives the call, where it has one.
    """

    messages: Sequence[Message]
    response_format: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stage: str | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """The messages' roles, in order."""
        return tuple(str(message.get("role", "")) for message in self.messages)

    @property
    def wants_json(self) -> bool:
        """Whether the host asked for JSON in any form."""
        return (self.response_format or {}).get("type") in ("json_object", "json_schema")

    def text(self, index: int) -> str:
        """The text of one message; ``""`` where its content is not a string (parts, ``None``)."""
        content = self.messages[index].get("content")
        return content if isinstance(content, str) else ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the model is asked (messages, tools, format): the same for a host's repeat."""
        asked = [list(self.messages), self.response_format, list(self.tools), self.tool_choice]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=repr).encode()).hexdigest()

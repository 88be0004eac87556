"""How many tokens a text takes, by estimate: langchain-openai would download a tokenizer, of another model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

_BYTES_A_TOKEN = 3  # English has about four, most other scripts three
_A_MESSAGE = 4


def of_text(text: str) -> int:
    """Estimate, rather too high, how many tokens a text takes."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def of_messages(messages: Sequence[BaseMessage], tools: Sequence[Any], count: Callable[[str], int]) -> int:
    """Estimate how many tokens messages and tools take; ``count`` says it of a text."""
    return sum(count(_text(message)) + _A_MESSAGE for message in messages) + sum(
        count(json.dumps(convert_to_openai_tool(tool), default=str)) for tool in tools
    )


def _text(message: BaseMessage) -> str:
    content = message.content if isinstance(message.content, list) else [message.content]
    texts = [part if isinstance(part, str) else str(part.get("text") or "") for part in content]
    if isinstance(message, AIMessage) and message.tool_calls:
        texts.append(json.dumps([[call["name"], call["args"]] for call in message.tool_calls], default=str))
    return "\n".join(texts)

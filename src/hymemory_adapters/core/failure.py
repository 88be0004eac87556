"""What went wrong on the wire, and what the user can do about it.

Only openai's own exceptions are looked at: openai 1 and 2 stand on httpx, openai 3 on httpx2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import openai

Kind = Literal[
    "refused",  # nothing listens there
    "transport",  # no answer, or one that says "later"
    "read_timeout",  # the server took the request and did not answer in time
    "form",  # the server does not know this form of constraint
    "schema",  # the server does not take this schema
    "context",  # prompt and budget do not fit the context
    "model",  # the server does not serve this model, or the URL is wrong
    "key",  # the key is wrong or missing
    "request",  # any other refusal: asking again would not help
]

_LATER = frozenset({408, 409, 425, 429})
_SCHEMA_WORDS = re.compile(
    r"(json|output)[ _]?schema contains|features not supported|into a grammar|grammar error|invalid (json )?schema|"
    r"schema conversion failed|failed to (compile|parse) (json )?grammar|"
    r"unsupported (json )?schema|\bschema .{0,40}(not supported|invalid|unsupported)",
    re.IGNORECASE,
)
_FORM_WORDS = re.compile(
    r"response[_ ]format|json_schema|json_object|structured[ _]output|guided|json mode", re.IGNORECASE
)
_CONTEXT_WORDS = re.compile(
    r"context length|context window|context size|max_model_len|max_tokens|max_completion_tokens|maximum .{0,20}tokens|"
    r"prompt is too long|input_tokens",
    re.IGNORECASE,
)
_CONTEXT_IS = re.compile(r"(?:context (?:length|window)|max_model_len)\D{0,20}(\d{3,})", re.IGNORECASE)
_PROMPT_IS = re.compile(
    r"(?:prompt contains(?: at least)?|input (?:has|contains))\s+(\d+)"
    r"|(\d+)(?: tokens)? (?:in the messages|from the input|input tokens)",
    re.IGNORECASE,
)
_SHOWN = 300
_ECHO = 24
_WORD = 4
_PHRASE = 8
_BETWEEN = re.compile(r"""\\n|[\n"'`]|: """)


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that brought no reply.

    Attributes:
        kind: what is to be done about it.
        detail: the server's or the network's words, cleaned of whatever the request held.
        status: the HTTP status; ``None`` where no answer came.
        retry_after: seconds that the server asks to wait.
        context: the context length in tokens, where the server named it.
        prompt: the prompt's length in tokens, where the server named it.
    """

    kind: Kind
    detail: str
    status: int | None = None
    retry_after: float | None = None
    context: int | None = None
    prompt: int | None = None


def classify(
    error: openai.OpenAIError,
    *,
    constrained: bool,
    messages: Sequence[Mapping[str, Any]],
    secrets: Sequence[str] = (),
) -> Failure:
    """Say what an exception of the openai package means for the request.

    Args:
        error: what the request raised.
        constrained: whether the request carried a ``response_format``.
        messages: the request's messages, whose text is kept out of ``detail``.
        secrets: what was sent as key and headers; some gateways quote it.
    """
    failure = _classified(error, constrained, messages)
    detail = failure.detail
    for secret in secrets:
        detail = detail.replace(secret, "(hidden)")
    return replace(failure, detail=detail)


def _classified(error: openai.OpenAIError, constrained: bool, messages: Sequence[Mapping[str, Any]]) -> Failure:
    import openai

    if isinstance(error, openai.APIStatusError):
        return _refusal(error, constrained, messages)
    if isinstance(error, openai.APIConnectionError):
        causes = list(_causes(error))
        names = {type(cause).__name__ for cause in causes}
        if isinstance(error, openai.APITimeoutError):
            if names & {"ConnectTimeout", "PoolTimeout"}:
                return Failure("transport", "no connection within the timeout")
            return Failure("read_timeout", "no answer within the timeout")
        if any(isinstance(cause, ConnectionRefusedError) or "refused" in str(cause) for cause in causes):
            return Failure("refused", "connection refused")
        detail = next((str(cause) for cause in causes[1:] if str(cause)), str(error))
        if "header" in detail.lower():  # the HTTP library quotes the header, which may be the key
            return Failure("request", "a header of the writer holds characters that HTTP does not allow")
        return Failure("transport", _clean(detail, messages))
    return Failure("request", f"the answer is not OpenAI's chat completion ({type(error).__name__})")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        # A name with several addresses (localhost): one failure each, in a group.
        yield from getattr(error, "exceptions", ())
        error = error.__cause__ or error.__context__


def _refusal(error: openai.APIStatusError, constrained: bool, messages: Sequence[Mapping[str, Any]]) -> Failure:
    status = error.status_code
    said = _server_text(error.body) or _server_text(error.response.text)
    detail = _clean(said, messages)
    if status in (401, 403):
        return Failure("key", detail, status)
    if status == 404:
        return Failure("model", detail, status)
    if status in _LATER or status >= 500:
        return Failure("transport", detail, status, retry_after=_retry_after(error))
    if constrained and _SCHEMA_WORDS.search(said):
        return Failure("schema", detail, status)
    if constrained and _FORM_WORDS.search(said):
        return Failure("form", detail, status)
    if _CONTEXT_WORDS.search(said) or error.param in ("max_tokens", "input_tokens"):
        context, prompt = _CONTEXT_IS.search(said), _PROMPT_IS.search(said)
        return Failure(
            "context",
            detail,
            status,
            context=int(context.group(1)) if context else None,
            prompt=int(prompt.group(1) or prompt.group(2)) if prompt else None,
        )
    return Failure("request", detail, status)


def _server_text(body: object) -> str:
    """Dig the sentence out of the many forms that servers give an error body."""
    if isinstance(body, Mapping):
        return _server_text(body.get("message") or body.get("detail") or body.get("error"))
    return body if isinstance(body, str) else ""


def _clean(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Shorten a server's words; drop them where they quote the conversation."""
    text = " ".join(text.split())[: _SHOWN + _ECHO]
    said = [str(message.get("content") or "") for message in messages]
    contents = [" ".join(content.split()) for content in said]
    asked = "\n".join([*contents, json.dumps(contents)])  # some servers quote it with \\u escapes
    windows = (text[i : i + _ECHO] for i in range(len(text) - _ECHO + 1))
    whole = {content for content in contents if len(content) >= _WORD}
    if any(window in asked for window in windows) or any(
        part in text or json.dumps(part)[1:-1] in text for part in whole | _parts(said)
    ):
        return "(the server's words quote the request and are left out)"
    return text[:_SHOWN]


def _parts(said: Sequence[str]) -> set[str]:
    """What stands alone in a line or between quotes: hosts put what people say into long prompts.

    One word of Latin letters is none: it may as well be the server's own.
    """
    parts = {" ".join(part.split()) for content in said for part in _BETWEEN.split(content)}
    latin = {part for part in parts if part.isascii() and " " in part and len(part) >= _PHRASE}
    return latin | {part for part in parts if not part.isascii() and len(part) >= _WORD}


def _retry_after(error: openai.APIStatusError) -> float | None:
    value = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        return _seconds_until(value)


def _seconds_until(date: str) -> float | None:
    from datetime import datetime, timezone
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())

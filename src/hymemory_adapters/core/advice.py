"""The sentences that tell people what went wrong and what they can do. No key, no conversation in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hymemory_adapters.core.events import Attempt
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.reply import Reply

if TYPE_CHECKING:
    from hymemory_adapters.core.endpoint import Endpoint
    from hymemory_adapters.settings import WriterSettings

SERVE = "vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory"
NO_WHITESPACE = '--structured-outputs-config \'{"backend": "xgrammar", "disable_any_whitespace": true}\''  # vLLM 0.32.0


def failure(settings: WriterSettings, endpoint: Endpoint, what: Failure) -> str:
    """Say why the endpoint brought no reply."""
    url, said = settings.shown_url, f": {what.detail}" if what.detail else ""
    status = f" (HTTP {what.status})" if what.status else ""
    match what.kind:
        case "refused":
            return refused(settings)
        case "key":
            if settings.api_key is None:
                return f"the server at {url} wants a key{status}, and none is set: set HYMEMORY_API_KEY"
            source = settings.source("api_key")
            return f"the server at {url} refused the key{status}, which is from {source}: change it there"
        case "model":
            return _not_served(settings, endpoint, what)
        case "context":
            length = f" of {endpoint.context or what.context} tokens" if endpoint.context or what.context else ""
            return (
                f"prompt and reply do not fit the context{length} of the server at {url}{said}. "
                "Start it with a larger --max-model-len"
            )
        case "read_timeout":
            return (
                f"the server at {url} took the request twice and did not answer within the timeout: is it overloaded? "
                f"HYMEMORY_TIMEOUT is {settings.timeout:g} seconds"
            )
        case "transport":
            wait = f", asking to wait {what.retry_after:g} s" if what.retry_after else ""
            return (
                f"the server at {url} did not answer{status}{wait}{said}. It was tried for {settings.retry_seconds:g} "
                f"seconds at most (HYMEMORY_RETRY_SECONDS), a whole call for {settings.deadline:g} (HYMEMORY_DEADLINE)"
            )
        case _:
            return (
                f"the server at {url} refused the request{status}{said}. Its log may say more, and `hymemory doctor` "
                "tries it with the schema of each write call"
            )


def refused(settings: WriterSettings, *, again: bool = False) -> str:
    """Say that nothing listens at the URL."""
    since = "refused a moment ago" if again else "refused"
    return (
        f"nothing answers at {settings.shown_url} (connection {since}; the URL is from {settings.source('base_url')}). "
        f"Start the server ({SERVE}) or set HYMEMORY_BASE_URL"
    )


def _not_served(settings: WriterSettings, endpoint: Endpoint, what: Failure) -> str:
    url = settings.shown_url
    if not endpoint.served:
        return f"the server at {url} has no chat completions there (HTTP 404): should the URL end in /v1?"
    if settings.model in endpoint.served:
        return f"the server at {url} answered HTTP 404 although it serves {settings.model!r}: {what.detail}"
    served = ", ".join(repr(name) for name in endpoint.served[:10])
    return (
        f"the server at {url} does not serve {settings.model!r} ({settings.source('model')}); it serves {served}: "
        "drop or change the model's name"
    )


def malformed(settings: WriterSettings, attempts: Sequence[Attempt], *, text: bool = False) -> str:
    """Say why no reply could be taken; a reply in free text loops for other reasons than one in JSON."""
    last = attempts[-1]
    problems = "; ".join(str(problem) for problem in last.problems)
    count = f"{len(attempts)} replies" if len(attempts) > 1 else "1 reply"
    said = (
        f"none of {count} of {settings.model!r} could be taken. Attempt {last.number}: {problems} "
        f"(finish reason {last.finish_reason or 'not given'}, {_tokens(last)})"
    )
    rules = {problem.rule for attempt in attempts for problem in attempt.problems}
    if rules & {"reasoning_only", "thinking_only"}:
        return f"{said}. The model thinks: check the writer's no_think switch, and that include_reasoning is not off"
    if "looping" in rules and not text:
        return f"{said}. A loop of white space is cured by the server flag {NO_WHITESPACE}"
    if "truncated" in rules and last.finish_reason == "length":
        return f"{said}. {_more_tokens(settings, last)}"
    if any(problem.rule == "finish_reason" for problem in last.problems):
        return f"{said}. The server's log may say why"
    more = f"HYMEMORY_ATTEMPTS (now {settings.attempts}) allows for more of them"
    if text:
        return f"{said}. {more}"
    if settings.constrain == "off":
        return f"{said}. HYMEMORY_CONSTRAIN is off, so that nothing holds the model to the schema; {more}"
    return f"{said}. `hymemory doctor` says whether this server holds the model to a schema; {more}"


def context_full(settings: WriterSettings, reply: Reply) -> str:
    """Say that the context ended before the reply did."""
    prompt = f" of {reply.tokens_in} tokens" if reply.tokens_in is not None else ""
    return (
        f"the reply was cut after {reply.tokens_out} tokens because the prompt{prompt} fills the context of the server "
        f"at {settings.shown_url}. Start it with a larger --max-model-len"
    )


def deadline(settings: WriterSettings) -> str:
    """Say that the time of the whole call is used up."""
    return f"the {settings.deadline:g} seconds of the whole call are used up (HYMEMORY_DEADLINE)"


def no_place(settings: WriterSettings) -> str:
    """Say that too many requests were under way."""
    return f"{deadline(settings)} while {settings.concurrency} other requests were under way (HYMEMORY_CONCURRENCY)"


def no_completion(settings: WriterSettings) -> str:
    """Say that the server speaks something else."""
    return f"the answer of {settings.shown_url} is no chat completion: is it an OpenAI-compatible server's /v1 URL?"


def broken_off(settings: WriterSettings, detail: str) -> str:
    """Say that a stream ended in the middle."""
    return f"the server at {settings.shown_url} broke off in the middle of its answer: {detail}"


def thinking(settings: WriterSettings) -> str:
    """Say that the model thinks although it was told not to."""
    return (
        f"{settings.model!r} at {settings.shown_url} thinks before it answers, although the writer "
        f"{settings.writer!r} says no_think = {settings.no_think}: writes are slower and cost more tokens"
    )


def json_in_reasoning(settings: WriterSettings) -> str:
    """Say that the server files answers under reasoning."""
    return (
        f"the server at {settings.shown_url} files whole answers under reasoning and leaves content empty; they are "
        "taken from there. Its --reasoning-parser expects thinking that the prompt switches off"
    )


def _more_tokens(settings: WriterSettings, last: Attempt) -> str:
    at_ceiling = last.tokens_out is None or last.tokens_out >= settings.max_tokens_ceiling
    name = "HYMEMORY_MAX_TOKENS_CEILING" if at_ceiling else "HYMEMORY_MAX_TOKENS"
    value = settings.max_tokens_ceiling if at_ceiling else settings.max_tokens
    return f"Raise {name} (now {value})"


def _tokens(attempt: Attempt) -> str:
    return "tokens not given" if attempt.tokens_out is None else f"{attempt.tokens_out} tokens"

"""The sentences that tell people what went wrong: each names what to turn, and says nothing that is not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hymemory_adapters import WriterSettings
from hymemory_adapters.core import advice
from hymemory_adapters.core.endpoint import Endpoint, endpoint_of
from hymemory_adapters.core.events import Attempt
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply

URL = "http://127.0.0.1:9/v1"
SOURCES = {"base_url": "HYMEMORY_BASE_URL", "api_key": "the app's config", "model": "a writers file"}
MANY = tuple(f"m{i}" for i in range(12))


def settings(**more: Any) -> WriterSettings:
    return WriterSettings(base_url=URL, sources=SOURCES, **more)


def endpoint(of: WriterSettings, context: int | None = None, served: Sequence[str] = ()) -> Endpoint:
    made = endpoint_of(of)
    made.context, made.served = context, tuple(served)
    return made


FAILURES: dict[str, tuple[Failure, dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing listens": (
        Failure("refused", "x"),
        {},
        {},
        [
            f"{URL} (connection refused; the URL is from HYMEMORY_BASE_URL)",
            "(vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory) or set HYMEMORY_BASE_URL",
        ],
    ),
    "no key": (Failure("key", "x", 401), {}, {}, ["wants a key (HTTP 401)", "set HYMEMORY_API_KEY"]),
    "a wrong key": (
        Failure("key", "x", 403),
        {"api_key": "k"},
        {},
        ["refused the key (HTTP 403), which is from the app's config: change it there"],
    ),
    "a wrong URL": (Failure("model", "x", 404), {}, {}, ["HTTP 404", "should the URL end in /v1?"]),
    "a 404 of its own": (
        Failure("model", "no such LoRA", 404),
        {"model": "m1"},
        {"served": MANY},
        ["HTTP 404 although it serves 'm1': no such LoRA"],
    ),
    "not served": (
        Failure("model", "x", 404),
        {"model": "gpt"},
        {"served": MANY},
        ["does not serve 'gpt' (a writers file); it serves 'm0', 'm1', ", "'m9': drop or change the model's name"],
    ),
    "no room, as known": (
        Failure("context", "too long", 400, context=700),
        {},
        {"context": 8192},
        ["the context of 8192 tokens of the server at", ": too long. Start it with a larger --max-model-len"],
    ),
    "no room, as the refusal says": (
        Failure("context", "", 400, context=700),
        {},
        {},
        ["the context of 700 tokens of the server at", f"{URL}. Start it"],
    ),
    "no room, known by itself": (
        Failure("context", "", 400),
        {},
        {"context": 512},
        ["the context of 512 tokens of the"],
    ),
    "no room": (Failure("context", "", 400), {}, {}, ["the context of the server at"]),
    "no answer in time": (Failure("read_timeout", "x"), {"timeout": 7}, {}, ["HYMEMORY_TIMEOUT is 7 seconds"]),
    "later": (
        Failure("transport", "busy", 429, retry_after=2.5),
        {"retry_seconds": 3, "deadline": 50},
        {},
        [
            "did not answer (HTTP 429), asking to wait 2.5 s: busy. It was tried for 3 seconds at most",
            "HYMEMORY_RETRY_SECONDS",
            "a whole call for 50 (HYMEMORY_DEADLINE)",
        ],
    ),
    "dropped": (Failure("transport", "reset"), {}, {}, ["did not answer: reset. It was tried for 10 seconds"]),
    "any other": (
        Failure("request", "no such thing", 400),
        {},
        {},
        ["refused the request (HTTP 400): no such thing. Its log"],
    ),
    "no words": (Failure("request", ""), {}, {}, ["refused the request. Its log may say more, and `hymemory doctor`"]),
    "a form": (Failure("form", "no", 400), {}, {}, ["refused the request (HTTP 400): no"]),
}


@pytest.mark.parametrize(("failure", "given", "known", "words"), FAILURES.values(), ids=FAILURES)
def test_why_the_endpoint_brought_no_reply(
    failure: Failure, given: dict[str, Any], known: dict[str, Any], words: list[str]
) -> None:
    told = advice.failure(settings(**given), endpoint(settings(**given), **known), failure)
    for part in words:
        assert part in told
    assert "None" not in told
    if not failure.detail:
        assert told.endswith(("with the schema of each write call", "--max-model-len"))


def test_that_nothing_listened_a_moment_ago() -> None:
    assert f"{URL} (connection refused a moment ago; the URL is from " in advice.refused(settings(), again=True)


def test_ten_models_are_enough() -> None:
    told = advice.failure(settings(model="x"), endpoint(settings(model="x"), served=MANY), Failure("model", "", 404))
    assert "'m10'" not in told


def attempt(rule: str, finish: str | None = "stop", tokens: int | None = 20, number: int = 1) -> Attempt:
    problems = (Problem(rule, f"this is {rule}", "$.a"), Problem("other", "and more"))
    return Attempt(number, finish, problems, 100, tokens)


MORE = "HYMEMORY_ATTEMPTS (now 3) allows for more of them"
DOCTOR = f"`hymemory doctor` says whether this server holds the model to a schema; {MORE}"
MALFORMED: dict[str, tuple[list[Attempt], dict[str, Any], str]] = {
    "one": (
        [attempt("schema")],
        {},
        "none of 1 reply of 'm' could be taken. Attempt 1: $.a: this is schema; and more (",
    ),
    "two": (
        [attempt("schema"), attempt("empty", number=2)],
        {},
        "none of 2 replies of 'm' could be taken. Attempt 2: $.a: this is empty; and more (finish reason stop, 20 ",
    ),
    "nothing is given": ([attempt("schema", None, None)], {}, f"(finish reason not given, tokens not given). {DOCTOR}"),
    "thinks": ([attempt("thinking_only")], {}, "20 tokens). The model thinks: check the writer's no_think switch"),
    "thought": (
        [attempt("reasoning_only"), attempt("schema", number=2)],
        {},
        "20 tokens). The model thinks: check the writer's no_think switch, and that include_reasoning is not off",
    ),
    "loops": (
        [attempt("looping", "length")],
        {},
        """the server flag --structured-outputs-config '{"backend": "xgrammar", "disable_any_whitespace": true}'""",
    ),
    "loops in text": ([attempt("looping", "length")], {"text": True}, f"(finish reason length, 20 tokens). {MORE}"),
    "not constrained": (
        [attempt("schema")],
        {"constrain": "off"},
        f"20 tokens). HYMEMORY_CONSTRAIN is off, so that nothing holds the model to the schema; {MORE}",
    ),
    "text, not constrained": (
        [attempt("empty")],
        {"constrain": "off", "text": True},
        f"(finish reason stop, 20 tokens). {MORE}",
    ),
    "stopped by the server": (
        [attempt("schema"), attempt("finish_reason", "content_filter", number=2)],
        {},
        "(finish reason content_filter, 20 tokens). The server's log may say why",
    ),
    "stopped by the server before": (
        [attempt("finish_reason", "abort"), attempt("schema", number=2)],
        {},
        f"(finish reason stop, 20 tokens). {DOCTOR}",
    ),
    "cut": ([attempt("truncated", "length", 4096)], {}, "). Raise HYMEMORY_MAX_TOKENS (now 4096)"),
    "cut at the ceiling": (
        [attempt("truncated", "length", 16384)],
        {},
        "). Raise HYMEMORY_MAX_TOKENS_CEILING (now 16384)",
    ),
    "cut, uncounted": ([attempt("truncated", "length", None)], {}, "). Raise HYMEMORY_MAX_TOKENS_CEILING (now 16384)"),
    "cut by its own end": ([attempt("truncated")], {}, f"(finish reason stop, 20 tokens). {DOCTOR}"),
    "cut before": (
        [attempt("truncated", "length", 4096), attempt("schema", number=2)],
        {},
        f"(finish reason stop, 20 tokens). {DOCTOR}",
    ),
    "long and malformed": ([attempt("schema", "length", 4096)], {}, f"(finish reason length, 4096 tokens). {DOCTOR}"),
}


@pytest.mark.parametrize(("attempts", "more", "words"), MALFORMED.values(), ids=MALFORMED)
def test_why_no_reply_could_be_taken(attempts: list[Attempt], more: dict[str, Any], words: str) -> None:
    given = {key: value for key, value in more.items() if key != "text"}
    of_text = {key: value for key, value in more.items() if key == "text"}
    told = advice.malformed(settings(model="m", **given), attempts, **of_text)
    assert words in told
    if words.startswith("("):
        assert told.endswith(words)


@pytest.mark.parametrize(("tokens", "words"), [(100, "the prompt of 100 tokens fills"), (None, "the prompt fills")])
def test_the_context_is_full(tokens: int | None, words: str) -> None:
    told = advice.context_full(settings(), Reply("x", tokens_in=tokens, tokens_out=50))
    assert words in told
    assert "after 50 tokens" in told
    assert "--max-model-len" in told


def test_the_time_is_over() -> None:
    assert "the 5 seconds of the whole call are used up (HYMEMORY_DEADLINE)" in advice.deadline(settings(deadline=5))
    told = advice.no_place(settings(deadline=5, concurrency=3))
    assert "(HYMEMORY_DEADLINE) while 3 other requests were under way (HYMEMORY_CONCURRENCY)" in told


def test_the_url_in_a_sentence_has_no_password() -> None:
    hidden = WriterSettings(base_url="http://me:s3cret@127.0.0.1:9/v1")
    for kind in ("refused", "key", "model", "context", "read_timeout", "transport", "request"):
        assert "s3cret" not in advice.failure(hidden, endpoint_of(hidden), Failure(kind, ""))  # type: ignore[arg-type]
    for tell in (advice.no_completion, advice.thinking, advice.json_in_reasoning):
        told = tell(hidden)
        assert URL in told
        assert "s3cret" not in told
    assert "--reasoning-parser" in advice.json_in_reasoning(hidden)

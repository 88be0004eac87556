"""Tokens and context: what is asked for, when it is raised, and when there is no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core.budget import Budget, estimated_prompt, estimated_tokens
from hymemory_adapters.core.conversation import Conversation
from hymemory_adapters.core.lost import EndpointError, MalformedWriteError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from tests.support.calls import GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, Say, ScriptedEndpoint

CUT = Say('{"facts": ["Likes te', finish_reason="length")


def too_many(asked: int, most: int) -> Fail:
    """vLLM 0.32.0's own words. They say nothing of the prompt's length."""
    message = (
        f"max_tokens={asked} cannot be greater than max_model_len={most}. Please request fewer output tokens. "
        f"(parameter=max_tokens, value={asked})"
    )
    return Fail(400, body=_body(message, "max_tokens"))


def too_long(prompt: str, most: int) -> Fail:
    message = (
        f"This model's maximum context length is {most} tokens. However, your prompt contains {prompt} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        f"(parameter=input_tokens, value={prompt})"
    )
    return Fail(400, body=_body(message, "input_tokens"))


def _body(message: str, param: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "param": param, "code": 400}}


def like_vllm(context: int, reply: Any = GOOD) -> Any:
    """A server that refuses what vLLM 0.32.0 refuses."""

    def play(body: dict[str, Any]) -> Any:
        return too_many(body["max_tokens"], context) if body["max_tokens"] > context else reply

    return play


def asked(endpoint: ScriptedEndpoint) -> list[int]:
    return [chat.body["max_tokens"] for chat in endpoint.chats]


# -- truncation -------------------------------------------------------------------------------------

LOOP = Say('{"facts": ["' + " \n" * 200, finish_reason="length")
TAIL = Say('{"facts": ["' + "tea and " * 100, finish_reason="length")

TRUNCATIONS: dict[str, tuple[Say, dict[str, int], int | None, list[int]]] = {
    "raised once": (CUT, {"max_tokens_ceiling": 10**6}, None, [4096, 16384, 16384, 16384]),
    "up to the ceiling": (CUT, {"max_tokens_ceiling": 6000}, None, [4096, 6000, 6000, 6000]),
    "a ceiling below": (CUT, {"max_tokens_ceiling": 100}, None, [4096] * 4),
    "the host asks for more": (CUT, {"max_tokens": 10}, 20000, [20000] * 4),
    "the host asks for less": (CUT, {}, 100, [4096, 16384, 16384, 16384]),
    "cut by its own end": (Say('{"facts": ["Likes'), {}, None, [4096, 16384, 16384, 16384]),
    "white space": (LOOP, {}, None, [4096] * 4),
    "a repeated tail": (TAIL, {}, None, [4096] * 4),
    "malformed": (Say("prose"), {}, None, [4096] * 4),
}


@both_ways
@pytest.mark.parametrize(("reply", "settings", "host", "budgets"), TRUNCATIONS.values(), ids=TRUNCATIONS)
def test_what_is_asked_for(
    write: Write, reply: Say, settings: dict[str, int], host: int | None, budgets: list[int]
) -> None:
    with ScriptedEndpoint(reply, context=None) as endpoint:
        with pytest.raises(MalformedWriteError):
            write(writer_at(endpoint, attempts=4, **settings), ask(max_tokens=host))
        assert asked(endpoint) == budgets


@both_ways
@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (CUT, r"finish reason length, 6000 tokens\)\. Raise HYMEMORY_MAX_TOKENS_CEILING \(now 6000\)$"),
        (LOOP, r"finish reason length, 4096 tokens\)\..*disable_any_whitespace"),
        (Say("prose"), r"finish reason stop, 20 tokens\)\. `hymemory doctor` says"),
        (Say("", "length", "Let me think. " * 99), r"only reasoning came back.* The model thinks: check .* no_think"),
    ],
    ids=["truncated", "looping", "malformed", "cut while thinking"],
)
def test_the_error_says_what_to_turn(write: Write, reply: Say, advice: str) -> None:
    with ScriptedEndpoint(reply) as endpoint, pytest.raises(MalformedWriteError, match=advice):
        write(writer_at(endpoint, max_tokens_ceiling=6000), ask())


def test_one_attempt_cut_below_the_ceiling_asks_for_more_tokens() -> None:
    advice = r"Raise HYMEMORY_MAX_TOKENS \(now 4096\)$"
    with ScriptedEndpoint(CUT) as endpoint, pytest.raises(MalformedWriteError, match=advice):
        writer_at(endpoint, attempts=1).write(ask())


@both_ways
def test_a_raised_budget_brings_the_reply(write: Write) -> None:
    with ScriptedEndpoint(CUT, GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
    assert [attempt.finish_reason for attempt in written.event.attempts] == ["length", "stop"]


@both_ways
def test_a_whole_reply_that_was_cut_is_cut(write: Write) -> None:
    with ScriptedEndpoint(Say(GOOD, finish_reason="length"), GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).event.attempts[0].problems[0].rule == "truncated"


# -- context ----------------------------------------------------------------------------------------


@both_ways
def test_a_full_context_stops_at_once(write: Write) -> None:
    """vLLM takes a prompt that fills the context, and stops after what is left of it."""
    with ScriptedEndpoint(Say('{"fac', finish_reason="length", tokens_out=50)) as endpoint:
        with pytest.raises(MalformedWriteError, match="--max-model-len") as lost:
            write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == 1
    assert "prompt of 100 tokens" in str(lost.value)
    assert "after 50 tokens" in str(lost.value)


@both_ways
def test_a_small_context_is_learned_without_an_attempt(write: Write) -> None:
    with ScriptedEndpoint(like_vllm(2048), context=None) as endpoint:
        writer = writer_at(endpoint, attempts=1)
        assert [write(writer, ask()).event.outcome for _ in range(3)] == ["ok"] * 3
        first, *others = asked(endpoint)
    assert first == 4096
    assert len(others) == 3, "one refusal in all, not one a write"
    assert all(1900 < tokens <= 2048 for tokens in others)


@both_ways
def test_a_prompt_that_looks_long_is_not_refused_by_our_own_estimate(write: Write) -> None:
    """Without a tokenizer the estimate is too high; vLLM's refusal of max_tokens names no prompt."""
    with ScriptedEndpoint(like_vllm(2048), context=None) as endpoint:
        assert write(writer_at(endpoint), ask(text="tea " * 2000)).event.outcome == "ok"
        assert asked(endpoint)[1] >= 1000


@both_ways
@pytest.mark.parametrize("context", [8192, 3000, 700])
def test_nothing_beyond_a_known_context_is_asked_for(write: Write, context: int) -> None:
    with ScriptedEndpoint(like_vllm(context, CUT), context=context) as endpoint:
        with pytest.raises(MalformedWriteError):
            write(writer_at(endpoint), ask())
        refused = [tokens for tokens in asked(endpoint) if tokens > context]
        assert refused == ([4096] if context < 4096 else []), "only while it is unknown"
        endpoint.play(GOOD)
        write(writer_at(endpoint), ask(text="another"))
        assert asked(endpoint)[0] <= context


@both_ways
@pytest.mark.parametrize("context", [None, 8192])
def test_a_prompt_that_is_too_long_is_one_clear_error(write: Write, context: int | None) -> None:
    with ScriptedEndpoint(too_long("at least 8193", 8192), context=context) as endpoint:
        with pytest.raises(EndpointError, match="--max-model-len") as lost:
            write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == 1
    assert "context of 8192 tokens" in str(lost.value)


@both_ways
def test_a_refusal_that_names_nothing_asks_the_server_once(write: Write) -> None:
    with ScriptedEndpoint(Fail(400, "max_tokens is too large"), GOOD, context=2048) as endpoint:
        written = write(writer_at(endpoint, attempts=1), ask())
        assert [r.path.rpartition("/")[2] for r in endpoint.requests] == ["completions", "models", "completions"]
        assert asked(endpoint)[1] < 2048
    assert written.event.outcome == "ok"


@both_ways
def test_a_refusal_that_repeats_ends(write: Write) -> None:
    with ScriptedEndpoint(lambda body: too_many(body["max_tokens"], 8192), context=None) as endpoint:
        with pytest.raises(EndpointError):
            write(writer_at(endpoint), ask(max_tokens=9000))
        assert len(endpoint.chats) == 2


@both_ways
@pytest.mark.parametrize("told_by", ["models", "a refusal"])
def test_failed_replies_that_do_not_fit_are_left_out(write: Write, told_by: str) -> None:
    bad = Say("x" * 900, tokens_out=20)
    if told_by == "models":
        endpoint = ScriptedEndpoint(bad, GOOD, context=280)
    else:
        endpoint = ScriptedEndpoint(bad, too_long("281", 280), GOOD, context=None)
    with endpoint:
        written = write(writer_at(endpoint, max_tokens=100), ask())
        first, last = endpoint.chats[0].messages, endpoint.chats[-1].messages
    assert last[:-1] == first, "the prompt stays, the reply is left out"
    assert "cannot be used" in last[-1]["content"]
    assert len(written.event.attempts) == 2


@both_ways
def test_a_prompt_that_does_not_fit_later_on_is_told_once(write: Write) -> None:
    with ScriptedEndpoint("prose", too_long("at least 8193", 8192), context=8192) as endpoint:
        with pytest.raises(EndpointError, match="--max-model-len") as lost:
            write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == 2
    assert "context of 8192 tokens" in str(lost.value)


@both_ways
def test_the_budget_of_a_passing_request_is_the_hosts_alone(write: Write) -> None:
    with ScriptedEndpoint(like_vllm(2048), context=None) as endpoint:
        with pytest.raises(EndpointError, match=r"^demo: .*context of 2048 tokens"):
            write(writer_at(endpoint), ask("chat", max_tokens=9000))
        assert asked(endpoint) == [9000]


@both_ways
def test_a_context_learned_late_leaves_the_prompt_its_half(write: Write) -> None:
    """The refusal names the context only, and the estimate of this prompt is beyond it."""
    with ScriptedEndpoint("prose", too_many(4096, 2048), GOOD, context=None) as endpoint:
        write(writer_at(endpoint), ask(text="tea " * 2000))
        assert asked(endpoint) == [4096, 4096, 2048 - 1024 - 8]


@pytest.mark.parametrize(("text", "tokens"), [("", 8), ("tea", 9), ("\u8336", 9), ("\ud83d", 9), ("tea" * 100, 108)])
def test_tokens_are_estimated_from_bytes(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_a_prompt_is_the_sum_of_its_messages() -> None:
    assert estimated_prompt([{"content": "tea"}, {"content": None}, {"role": "user"}]) == 9 + 8 + 8


@pytest.mark.parametrize(
    ("context", "fits", "tokens"), [(171, False, 100), (172, True, 64), (208, True, 100), (209, True, 100)]
)
def test_a_reply_needs_room_for_64_tokens(context: int, fits: bool, tokens: int) -> None:
    budget = Budget(max_tokens=100, ceiling=100, timeout=1, deadline=1)
    assert (budget.fit(context, 100), budget.max_tokens) == (fits, tokens)


MESSAGES = [{"role": "user", "content": "I like tea, " * 100}]
BAD = [Problem("not_json", "there is no JSON")]
CONTEXTS: dict[str, tuple[int, int | None, int, int]] = {
    "the server's count": (5000, 1000, 5, 1000),
    "not counted": (5000, None, 5, estimated_prompt(MESSAGES)),
    "no room for the replies": (1300, 1000, 2, 1000),
}


@pytest.mark.parametrize(("context", "counted", "sent", "prompt"), CONTEXTS.values(), ids=CONTEXTS)
def test_what_is_left_of_a_context(context: int, counted: int | None, sent: int, prompt: int) -> None:
    conversation = Conversation(MESSAGES)
    for more in (0, 500):  # the second count holds the first reply too
        conversation.ask_again(Reply("Likes tea. " * 20, tokens_in=counted and counted + more), BAD)
    budget = Budget(max_tokens=9000, ceiling=9000, timeout=1, deadline=1)
    messages = conversation.fitted(budget, context)
    assert messages[:1] == MESSAGES
    assert len(messages) == sent
    assert messages[-1]["role"] == "user"
    assert budget.max_tokens == context - prompt - estimated_prompt(messages[1:]) - 8


@pytest.mark.parametrize(("context", "left"), [(5000, 5000 - 408 - 8), (701, 701 - 350 - 8)])
def test_what_a_first_prompt_leaves_of_a_context(context: int, left: int) -> None:
    budget = Budget(max_tokens=9000, ceiling=9000, timeout=1, deadline=1)
    assert Conversation(MESSAGES).fitted(budget, context) == MESSAGES
    assert repr(budget.max_tokens) == repr(left), "no fraction of a token"


# -- time -------------------------------------------------------------------------------------------


def test_a_request_has_the_time_that_its_tokens_need_and_the_call_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("hymemory_adapters.core.budget.time", SimpleNamespace(monotonic=lambda: now))
    budget = Budget(max_tokens=4096, ceiling=16384, timeout=120, deadline=600)
    assert budget.request_timeout == 120
    budget.raise_after_truncation()
    assert budget.request_timeout == pytest.approx(16384 / 50)
    now += 500
    assert (budget.request_timeout, budget.remaining) == (100, 100)
    now += 500
    assert 0 < budget.request_timeout <= 0.001, "never zero or less, which the client takes for no limit"

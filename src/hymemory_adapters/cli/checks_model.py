"""The checks of what the model's replies are: constrained, without thinking, without white space."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from hymemory_adapters.cli.check import Context, Finding, Verdict
from hymemory_adapters.cli.checks_server import failed, tools
from hymemory_adapters.core.advice import NO_WHITESPACE
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.reply import Reply, is_looping
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, judge

WORD = "quokka-7f3a"
ONE_WORD = Schema(
    {
        "type": "object",
        "properties": {"word": {"type": "string", "enum": [WORD]}},
        "required": ["word"],
        "additionalProperties": False,
    },
    name="doctor_word",
)
"""It allows one reply, which no model would give by itself."""
PROBES = (
    "Name any animal. Answer with a JSON object.",
    'Answer with the JSON object {"word": "zebra"}, exactly so, and nothing else.',
)
PROBE_TOKENS = 256  # enough to see a loop

ONE_TRUTH = Schema(
    {
        "type": "object",
        "properties": {"ok": {"type": "boolean", "enum": [True]}},
        "required": ["ok"],
        "additionalProperties": False,
    },
    name="doctor_truth",
)
"""The shortest reply that holds places for white space."""
SPACES = ("\n", " ", "\t", "\n\n", "  ", "    ", "\n  ", "\r\n")
SPACE_TOKENS = 24

_TAG = re.compile(r"<(/?)think(?:ing)?(?::[\w.-]+)?>", re.IGNORECASE)


# -- schema ----------------------------------------------------------------------------------------


def schema(context: Context) -> Sequence[Finding]:
    """Whether the server really obeys a schema."""
    settings, server = tools(context)
    if settings.constrain == "off" or settings.form != "json_schema":
        name = "HYMEMORY_CONSTRAIN=off" if settings.constrain == "off" else f"form = {settings.form!r}"
        text = f"{name}: replies are validated, and not constrained by their schema"
        return [Finding(Verdict.WARNING, text, "leave it at its default, unless the server knows no schemas")]
    found: list[Finding] = []
    for text in PROBES:
        reply = server.chat(text, ONE_WORD, max_tokens=PROBE_TOKENS)
        if isinstance(reply, Failure):
            return [_refused(context, reply)]
        context.replies.append(reply)
        context.looped = context.looped or _is_loop(reply)
        found.append(judge_obedience(reply))
        if found[-1].verdict is not Verdict.OK:
            break
    context.obeyed = found[-1].verdict is Verdict.OK
    return found[-1:]


def judge_obedience(reply: Reply) -> Finding:
    """Say whether a reply to a probe obeys the schema."""
    verdict = judge(reply, Contract(schema=ONE_WORD))
    text, data = reply.text or "", {"finish_reason": reply.finish_reason}
    if verdict.value is not None:
        return Finding(Verdict.OK, "obeyed, also where the prompt asks for something else", data=data)
    if _is_loop(reply):
        text = f"the reply is white space without end, cut after {PROBE_TOKENS} tokens"
        return Finding(Verdict.BAD, text, f"start the server with {NO_WHITESPACE}", data)
    if not text.strip() and (reply.reasoning or "").strip():
        return Finding(Verdict.UNKNOWN, "only reasoning came back, and no answer: see the next step", data=data)
    if not text.strip():
        do = f"start the server with a backend named: {NO_WHITESPACE}"  # the trap of backend "auto"
        return Finding(Verdict.BAD, f"the reply is empty (finish reason {reply.finish_reason})", do, data)
    if reply.finish_reason == "length" and _could_become_the_word(text):
        return Finding(Verdict.UNKNOWN, f"the reply was cut after {PROBE_TOKENS} tokens", data=data)
    return Finding(
        Verdict.BAD,
        "the server takes the schema and ignores it: the reply is another than the one it allows",
        "serve with vLLM (its structured outputs need no flag), or set form in the writer's entry to what it knows",
        data,
    )


def _is_loop(reply: Reply) -> bool:
    text = reply.text or ""
    return reply.finish_reason == "length" and is_looping(text) and sum(map(str.isspace, text)) > len(text) // 2


def _could_become_the_word(text: str) -> bool:
    return json.dumps({"word": WORD}).replace(" ", "").startswith("".join(text.split()))


def _refused(context: Context, failure: Failure) -> Finding:
    if failure.kind in ("form", "schema"):
        text = f"the server refuses to be constrained by a schema (HTTP {failure.status}: {failure.detail})"
        do = "replies are validated all the same; serve with vLLM to have them constrained"
        return Finding(Verdict.WARNING, text, do, {"failure": failure.kind})
    return failed(context, failure)


# -- thinking --------------------------------------------------------------------------------------


def thinking(context: Context) -> Sequence[Finding]:
    """Whether thinking is off, by the prompt's end and by what comes back."""
    settings, server = tools(context)
    messages = [{"role": "user", "content": "Say hello."}]
    tokens = server.tokenize_prompt(messages, return_token_strs=True)
    strings = tokens.get("token_strs") if tokens else None
    prompt = "".join(map(str, strings)) if isinstance(strings, list) else None
    reply = server.chat("Say hello.", None, max_tokens=32)
    if isinstance(reply, Failure) and not context.replies:
        return [failed(context, reply)]
    replies = [*context.replies, *([reply] if isinstance(reply, Reply) else [])]
    return [judge_thinking(prompt, replies, writer=settings.writer, no_think=settings.no_think)]


def judge_thinking(prompt: str | None, replies: Sequence[Reply], *, writer: str, no_think: Any) -> Finding:
    """Say whether a model thinks, from its whole prompt (``None`` if it cannot be seen) and its replies."""
    tags = list(_TAG.finditer(prompt or ""))
    opened, closed = (bool(tags) and bool(tags[-1].group(1)) is end for end in (False, True))
    reasons = any((reply.reasoning or "").strip() for reply in replies)
    tagged = any(_TAG.match((reply.text or "").lstrip()) for reply in replies)
    misfiled = any("json_in_reasoning" in judge(reply, Contract(schema=ONE_WORD)).normalisations for reply in replies)
    data = {"prompt_opens": opened, "prompt_closes": closed, "reasoning": reasons, "prompt_seen": prompt is not None}
    switch = f"the writer {writer!r} sends no_think = {json.dumps(dict(no_think))}"
    if reasons and not opened and (closed or misfiled):
        return Finding(
            Verdict.BAD,
            "the prompt switches thinking off, and the server files answers under reasoning, with no content: "
            "JSON is taken from there, any other answer is lost",
            f"the server's --reasoning-parser expects thinking; {switch}: for hy_v3 the value is exactly no_think",
            data,
        )
    if opened or reasons or tagged:
        text = "the model thinks before it answers: writes are slow, and lost where thinking uses up their tokens"
        do = f"{switch}, which does not switch it off here: correct the writer's entry, or choose HYMEMORY_WRITER"
        return Finding(Verdict.BAD, text, do, data)
    how = "no reasoning came back" if prompt is None else "the prompt's end opens no thinking, and none came back"
    return Finding(Verdict.OK, f"off: {how}", data=data)


# -- white space -----------------------------------------------------------------------------------


def white_space(context: Context) -> Sequence[Finding]:
    """Whether the grammar leaves room for white space without end.

    Tokens of white space are made irresistible (``logit_bias``): where the grammar allows them, nothing else
    comes.
    """
    _, server = tools(context)
    if context.looped:
        text = "the model falls into white space that the server's grammar allows: writes end there"
        return [Finding(Verdict.BAD, text, f"start the server with {NO_WHITESPACE}")]
    if not context.obeyed:
        return [Finding(Verdict.SKIPPED, "needs schema")]
    answers = (server.tokenize(prompt=space, add_special_tokens=False) for space in SPACES)
    ids = {answer["tokens"][0] for answer in answers if answer and len(answer["tokens"]) == 1}
    if not ids:
        return [_cannot_tell("the server has no /tokenize")]
    bias = {str(token): 100 for token in sorted(ids)}
    free = server.chat("Say hello.", None, max_tokens=4, logit_bias=bias)
    bound = server.chat("Say that all is well, as JSON.", ONE_TRUTH, max_tokens=SPACE_TOKENS, logit_bias=bias)
    if isinstance(free, Failure) or isinstance(bound, Failure):
        return [_cannot_tell("the server takes no logit_bias")]
    return [judge_white_space(free.text or "", bound.text or "")]


def judge_white_space(free: str, bound: str) -> Finding:
    """Compare two replies that lean to white space: an unconstrained one, and one under a grammar."""
    if not free or free.strip():
        return _cannot_tell("the server ignores logit_bias")
    spaces = sum(map(str.isspace, bound))
    data = {"white_space": spaces, "characters": len(bound)}
    if judge(Reply(bound, finish_reason="stop"), Contract(schema=ONE_TRUTH)).value is not None and spaces <= 4:
        return Finding(Verdict.OK, "the server's grammars leave no room for it", data=data)
    if spaces > len(bound) // 2:
        text = "the server's grammars allow white space without end: a model that falls into it loses the write"
        return Finding(Verdict.WARNING, text, f"start the server with {NO_WHITESPACE}", data)
    return _cannot_tell("the probe's reply is neither white space nor the JSON")


def _cannot_tell(why: str) -> Finding:
    do = f"if writes end in white space, start vLLM with {NO_WHITESPACE}"
    return Finding(Verdict.UNKNOWN, f"cannot be told: {why}", do)


# -- grammars --------------------------------------------------------------------------------------


def grammars(context: Context) -> Sequence[Finding]:
    """Have the server compile the grammar of each write call, so that the first write does not wait for it."""
    settings, server = tools(context)
    calls = [call for host in context.hosts for call in host.calls if call.typical]
    if settings.constrain == "off" or not calls:
        why = "HYMEMORY_CONSTRAIN=off" if settings.constrain == "off" else "no host with schemas is installed here"
        return [Finding(Verdict.SKIPPED, why)]
    seconds: dict[str, float] = {}
    found: list[Finding] = []
    for call in calls:
        started = time.monotonic()
        reply = server.chat("Say that there is nothing to do.", call.typical, max_tokens=1)
        seconds[call.name] = round(time.monotonic() - started, 3)
        if not isinstance(reply, Failure):
            continue
        if reply.kind not in ("form", "schema"):
            found.append(failed(context, reply, call.name))
            continue
        text = f"{call.name}: the server refuses its schema (HTTP {reply.status}: {reply.detail})"
        do = "replies are validated all the same; please report it with the server's version"
        found.append(Finding(Verdict.WARNING, text, do))
    times = ", ".join(f"{name} {taken:.2f} s" for name, taken in seconds.items())
    return found or [Finding(Verdict.OK, f"compiled: {times}", data={"seconds": seconds})]

"""LangMem's prompt optimizers: the app's prompt is improved, or stays, or an exception says why not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from langmem import create_multi_prompt_optimizer, create_prompt_optimizer

from hymemory_adapters import HyMemoryError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.host import Run, assert_on_the_wire, both_ways, in_a_thread, reply
from tests.support.cases import MalformedReply, malformed
from tests.support.scripted import Fail, ScriptedEndpoint

TALKS = [([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], "too {short}")]
OLD, NEW = "You are {name}. Be kind.", "You are {name}. Be kind and say more."
PROMPTS = [{"name": "greet", "prompt": OLD}, {"name": "part", "prompt": "Say goodbye."}]
ATTEMPTS = 3

THINK = reply(("think", {"thought": "too short"}))
NOTHING_TO_DO = reply(("recommend", {"warrants_adjustment": False, "full_recommendations": "No recommendations."}))
RECOMMEND = reply(("recommend", {"warrants_adjustment": True, "hypotheses": "h", "full_recommendations": "Say more"}))


def improved(prompt: str | None) -> str:
    return reply(("OptimizedPromptOutput", {"analysis": "a", "improved_prompt": prompt}))


def remembered(prompt: str, *, update: bool = True) -> str:
    return json.dumps({"logic": "l", "update_prompt": update, "new_prompt": prompt})


def which(*names: str) -> str:
    return reply(("Classify", {"reasoning": "r", "which": list(names)}))


def optimize(kind: str, model: Any, run: Run, prompt: str = OLD) -> Any:
    return run(create_prompt_optimizer(model, kind=kind), {"trajectories": TALKS, "prompt": prompt})


def optimize_both(model: Any, run: Run) -> Any:
    done = run(
        create_multi_prompt_optimizer(model, kind="prompt_memory"), {"trajectories": TALKS, "prompts": [*PROMPTS]}
    )
    return [prompt["prompt"] for prompt in done]


@dataclass(frozen=True)
class Case:
    """An optimizer, and one of the requests that it makes.

    Attributes:
        ask: run it; return what it returns.
        call: the request's.
        before: what is played before the reply.
        good: the reply.
        after: what is played after it.
        brought: what ``ask`` returns then.
    """

    ask: Callable[[Any, Run], Any]
    call: str
    before: tuple[str, ...]
    good: str
    after: tuple[str, ...]
    brought: Any


gradient, metaprompt, prompt_memory = (partial(optimize, kind) for kind in ("gradient", "metaprompt", "prompt_memory"))
CASES = {
    "gradient thinks": Case(gradient, "langmem.reflect", (), THINK, (RECOMMEND, improved(NEW)), NEW),
    "gradient recommends": Case(gradient, "langmem.reflect", (THINK,), RECOMMEND, (improved(NEW),), NEW),
    "gradient has nothing to do": Case(gradient, "langmem.reflect", (THINK,), NOTHING_TO_DO, (), OLD),
    "gradient writes": Case(gradient, "langmem.prompt", (THINK, RECOMMEND), improved(NEW), (), NEW),
    "metaprompt thinks": Case(
        metaprompt, "langmem.reflect", (THINK,), improved(NEW), (THINK, THINK, improved(NEW)), NEW
    ),
    "metaprompt writes": Case(metaprompt, "langmem.prompt", (THINK,) * 4, improved(NEW), (), NEW),
    "prompt_memory": Case(prompt_memory, "langmem.prompt_memory", (), remembered(NEW), (), NEW),
    "multi chooses": Case(
        optimize_both, "langmem.classify", (), which("part"), (remembered("Say bye."),), [OLD, "Say bye."]
    ),
    "multi chooses none": Case(optimize_both, "langmem.classify", (), which(), (), [OLD, "Say goodbye."]),
    "multi writes": Case(
        optimize_both, "langmem.prompt_memory", (which("greet"),), remembered(NEW), (), [NEW, "Say goodbye."]
    ),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
FAULTS = ("null_content", "cut_half_length", "prose", "empty_object")
EACH_FAULT = [
    pytest.param(case, kind, id=f"{name}-{kind.name}")
    for name, case in CASES.items()
    for kind in malformed(json.loads(case.good))
    if kind.name in FAULTS
]


@each_case
@both_ways
def test_good_replies_cost_one_request_each(
    case: Case, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    script = (*case.before, case.good, *case.after)
    endpoint.play(*script)
    assert case.ask(model, run) == case.brought
    assert len(endpoint.chats) == len(script)
    assert [event.outcome for event in heard] == ["ok"] * len(script)
    assert heard[len(case.before)].call == case.call
    for chat in endpoint.chats:
        assert_on_the_wire(chat.body)


@pytest.mark.parametrize(("case", "kind"), EACH_FAULT)
@both_ways
def test_a_malformed_reply_is_asked_for_again(
    case: Case, kind: MalformedReply, run: Run, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(*case.before, kind.say(), case.good, *case.after)
    assert case.ask(model, run) == case.brought
    assert len(endpoint.chats) == len(case.before) + 2 + len(case.after)


@pytest.mark.parametrize(("case", "kind"), EACH_FAULT)
@both_ways
def test_what_never_comes_raises(
    case: Case,
    kind: MalformedReply,
    run: Run,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
) -> None:
    endpoint.play(*case.before, kind.say())
    with pytest.raises(HyMemoryError, match=case.call):
        case.ask(make_model(attempts=ATTEMPTS), run)
    assert len(endpoint.chats) == len(case.before) + ATTEMPTS
    assert [event.call for event in heard if event.outcome == "lost"] == [case.call]


@each_case
@both_ways
def test_a_server_that_refuses_raises(
    case: Case, run: Run, make_model: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(*case.before, Fail(500, "no"))
    with pytest.raises(HyMemoryError):
        case.ask(make_model(retry_seconds=0), run)
    assert len(endpoint.chats) == len(case.before) + 1


# What fits the schema, and would have cost the app its prompt: the case, the reply, the rule of its problem.
MISTAKES: dict[str, tuple[str, str, str]] = {
    **{
        f"{case}: {name}": (case, improved(prompt), rule)
        for case in ("gradient writes", "metaprompt thinks", "metaprompt writes")
        for name, prompt, rule in (
            ("no prompt", None, "blank"),
            ("empty prompt", "", "blank"),
            ("blank prompt", " \n", "blank"),
            ("words about it", "No recommendations.", "blank"),
            ("lost variable", "Be kind and say more.", "variable"),
        )
    },
    "blank thought": ("gradient thinks", reply(("think", {"thought": " "})), "blank"),
    "no recommendation": ("gradient recommends", reply(("recommend", {"warrants_adjustment": True})), "blank"),
    "null recommendation": (
        "gradient recommends",
        reply(("recommend", {"warrants_adjustment": True, "full_recommendations": None})),
        "blank",
    ),
    "two recommendations": (
        "gradient recommends",
        reply(*(("recommend", {"warrants_adjustment": True, "full_recommendations": x}) for x in "ab")),
        "twice",
    ),
    "empty update": ("prompt_memory", remembered(""), "blank"),
    "blank update": ("prompt_memory", remembered(" \n"), "blank"),
    "update in words": ("prompt_memory", remembered("No recommendation."), "blank"),
    "no update, but another prompt": ("prompt_memory", remembered(NEW, update=False), "undecided"),
    "prompt that is not there": ("multi chooses", which("part", "stranger"), "unknown_id"),
}


@pytest.mark.parametrize(("case", "mistake", "rule"), MISTAKES.values(), ids=MISTAKES)
@both_ways
def test_a_mistake_is_asked_again(
    case: str, mistake: str, rule: str, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    found = CASES[case]
    endpoint.play(*found.before, mistake, found.good, *found.after)
    assert found.ask(model, run) == found.brought
    assert len(endpoint.chats) == len(found.before) + 2 + len(found.after)
    told = heard[len(found.before)].attempts[0].problems
    assert [problem.rule for problem in told] == [rule]
    assert not [problem for problem in told if "stranger" in str(problem) or "Be kind" in str(problem)]


KEPT = {
    "plain": "Be kind.",
    "variables": OLD,
    "code": 'Answer with {"a": 1}.\n\n  ```json\n[]\n```',
    "LangMem's own tags": "<current_prompt>\nx\n</current_prompt>\n<data>\n",
    "blank": " \n",
    "empty": "",
}


@pytest.mark.parametrize("said", ["", " ", "No recommendations."], ids=["empty", "blank", "words"])
@pytest.mark.parametrize("old", KEPT.values(), ids=KEPT)
@both_ways
def test_an_update_that_is_none_keeps_the_prompt(
    old: str, said: str, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(remembered(said, update=False))
    assert prompt_memory(model, run, old) == old
    assert len(endpoint.chats) == 1
    assert [event.outcome for event in heard] == ["ok"]


def test_a_prompt_that_cannot_be_told_from_the_conversation_is_asked_for(
    model: Any, endpoint: ScriptedEndpoint
) -> None:
    """A prompt with the very words that LangMem puts behind it: which of them end it cannot be known."""
    behind = "\n</current_prompt>\n\nHere are examples of various agent trajectories and associated feedback:\n<data>\n"
    old = f"Be kind.{behind}"
    endpoint.play(remembered("", update=False), remembered(old, update=True))
    assert prompt_memory(model, in_a_thread, old) == old
    assert len(endpoint.chats) == 2
    assert "$.update_prompt" in endpoint.chats[1].messages[-1]["content"]


def test_two_minds_twice_keep_the_prompt(model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    endpoint.play(remembered(NEW, update=False))
    assert prompt_memory(model, in_a_thread) == OLD
    assert len(endpoint.chats) == 2
    assert [event.outcome for event in heard] == ["declined"]


def test_a_lost_prompt_of_several_leaves_all_as_they_were(model: Any, endpoint: ScriptedEndpoint) -> None:
    prompts = [dict(prompt) for prompt in PROMPTS]
    endpoint.play(which("greet", "part"), remembered(NEW), "words")
    with pytest.raises(HyMemoryError, match=r"langmem\.prompt_memory"):
        create_multi_prompt_optimizer(model, kind="prompt_memory").invoke({"trajectories": TALKS, "prompts": prompts})
    assert prompts == PROMPTS


def test_names_of_prompts_in_pythons_own_spelling(model: Any, endpoint: ScriptedEndpoint) -> None:
    names: Sequence[str] = ("it's [one]", 'the "other"]')
    prompts = [{"name": name, "prompt": "Be kind."} for name in names]
    endpoint.play(which(names[1]), remembered("Say more."))
    done = create_multi_prompt_optimizer(model, kind="prompt_memory").invoke(
        {"trajectories": TALKS, "prompts": prompts}
    )
    assert [prompt["prompt"] for prompt in done] == ["Be kind.", "Say more."]
    assert len(endpoint.chats) == 2

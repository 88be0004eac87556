"""LangMem's prompt optimizers: how an agent learns (``langmem/prompts`` 0.0.30).

They write the app's next system prompt. Measured, what became of the old one:

``gradient``
    an empty prompt, "No recommendations." and the prompt made of no recommendation at all ("None" stands in the
    request then) all took its place. A prompt without one of its variables crashed the optimizer (``IndexError``),
    and so did text and ``null``.
``metaprompt``
    crashes alike; blank space took its place; "No recommendations." leaves it.
``prompt_memory``
    its prompt asks for ``update_prompt: false`` and an empty prompt if nothing is to change, and the optimizer reads
    the prompt alone: the old one was wiped.
``create_multi_prompt_optimizer``
    names that are no prompt's cost a repair, and crash it if that brings nothing.

Where a request raises, so do they all, in threads and coroutines: the app still has its old prompt, and the
conversations. So every loss here is an exception.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.tools import Answer, ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.installed import constant, template
from hymemory_adapters.langchain.structured import structured_call
from hymemory_adapters.langchain.trustcall import Path, blank, each_call, like, tool_names

_PROMPT, _RECOMMEND, _CLASSIFY = "OptimizedPromptOutput", "recommend", "Classify"
_REFLECT = {"think", "critique", _RECOMMEND, _PROMPT}
_VARIABLES = re.compile(r"to be templated in: (.+)\. You must retain", re.DOTALL)
_CHOICES = re.compile(r"Must be among (\[.*\])$", re.DOTALL)
_FULL = "must be the full prompt; if nothing is to change, the current one"

_MODULE = "langmem.prompts.prompt"
_TEMPLATES = ("INSTRUCTION_REFLECTION_MULTIPLE_PROMPT", "INSTRUCTION_REFLECTION_PROMPT")
_NEW_PROMPT = {
    "type": "object",
    "properties": {
        "logic": {"type": "string"},
        "update_prompt": {"type": "boolean"},
        "new_prompt": {"type": "string"},
    },
    "required": ["logic", "update_prompt", "new_prompt"],
}


def optimizer_calls() -> tuple[WriteCall, ...]:
    """Build the four rows; they go before trustcall's, which know most of these requests too."""
    text = {"type": "string"}
    return (
        WriteCall(
            "langmem.reflect",
            _reflect,
            OnLost.RAISE,
            summary="thinks about how an agent did, and recommends changes of its prompt (gradient, metaprompt)",
            typical=like(think={"thought": text}, recommend={"warrants_adjustment": {"type": "boolean"}}),
        ),
        WriteCall(
            "langmem.prompt",
            _prompt,
            OnLost.RAISE,
            summary="writes an agent's next prompt (gradient, metaprompt)",
            typical=like(OptimizedPromptOutput={"analysis": text, "improved_prompt": text}),
        ),
        WriteCall(
            "langmem.prompt_memory",
            _prompt_memory,
            OnLost.RAISE,
            summary="writes an agent's next prompt, or leaves it as it is (prompt_memory)",
            typical=Schema(_NEW_PROMPT, name="GeneralResponse"),
        ),
        WriteCall(
            "langmem.classify",
            _classify,
            OnLost.RAISE,
            summary="says which of several prompts are to be improved (create_multi_prompt_optimizer)",
            typical=like(Classify={"reasoning": text, "which": {"type": "array", "items": text}}),
        ),
    )


def _trustcall(request: Request) -> Tools | None:
    return Tools.of(request) if request.stage == "extract" else None


def _described(tools: Tools, name: str, key: str) -> str:
    """What the host says of an argument."""
    for function in tools.functions:
        if function.get("name") == name:
            properties = (function.get("parameters") or {}).get("properties") or {}
            return str((properties.get(key) or {}).get("description") or "")
    return ""


def _is_blank(value: Any) -> bool:
    return not (isinstance(value, str) and value.strip())


def _is_no_prompt(value: Any) -> bool:
    return _is_blank(value) or value.strip().lower().startswith("no recommend")


# -- gradient, metaprompt --------------------------------------------------------------------------


def _reflect(request: Request) -> Contract | None:
    names = tool_names(request)
    tools = _trustcall(request)
    if tools is None or not names <= _REFLECT or names == {_PROMPT}:
        return None
    check_prompt = _prompt_check(tools)

    def check(call: ToolCall, path: Path) -> Sequence[Problem]:
        if call.name == _PROMPT:
            return check_prompt(call, path)
        if call.name == _RECOMMEND:
            return _recommends(call, path)
        return blank(call, path)

    return tool_contract(request, tools, check=lambda answer: each_call(answer, check) or _two_minds(answer))


def _recommends(call: ToolCall, path: Path) -> Sequence[Problem]:
    if not call.arguments["warrants_adjustment"] or not _is_blank(call.arguments.get("full_recommendations")):
        return ()
    return [Problem("blank", "is needed where an adjustment is warranted", json_path((*path, "full_recommendations")))]


def _two_minds(answer: Answer) -> list[Problem]:
    """Of two recommendations, the host takes the first."""
    if sum(call.name == _RECOMMEND for call in answer.calls) < 2:
        return []
    return [Problem("twice", f'call "{_RECOMMEND}" only once: put all recommendations into one', "$.tool_calls")]


def _prompt(request: Request) -> Contract | None:
    tools = _trustcall(request)
    if tools is None or tool_names(request) != {_PROMPT}:
        return None
    check = _prompt_check(tools)
    return tool_contract(request, tools, check=lambda answer: each_call(answer, check))


def _prompt_check(tools: Tools) -> Callable[[ToolCall, Path], Sequence[Problem]]:
    found = _VARIABLES.search(_described(tools, _PROMPT, "improved_prompt"))
    variables = re.findall(r"\{(.+?)\}", found[1]) if found else []

    def check(call: ToolCall, path: Path) -> Sequence[Problem]:
        prompt, where = call.arguments["improved_prompt"], json_path((*path, "improved_prompt"))
        if _is_no_prompt(prompt):
            return [Problem("blank", _FULL, where)]
        missing = [name if name.isidentifier() else "..." for name in variables if f"{{{name}}}" not in prompt]
        lost = f"must keep its variables: {', '.join(f'{{{name}}}' for name in missing)} is missing"
        return [Problem("variable", lost, where)] if missing else ()

    return check


# -- which prompts ---------------------------------------------------------------------------------


def _classify(request: Request) -> Contract | None:
    tools = _trustcall(request)
    if tools is None or tool_names(request) != {_CLASSIFY}:
        return None
    choices = _choices(_described(tools, _CLASSIFY, "which"))

    def check(call: ToolCall, path: Path) -> Sequence[Problem]:
        shown = ", ".join(choices or ())
        return [
            Problem("unknown_id", f"must be one of {shown}", json_path((*path, "which", index)))
            for index, name in enumerate(call.arguments["which"])
            if choices is not None and name not in choices
        ]

    return tool_contract(request, tools, check=lambda answer: each_call(answer, check))


def _choices(description: str) -> tuple[str, ...] | None:
    """The prompts' names in Python's own spelling; ``None`` where they cannot be read."""
    if not (found := _CHOICES.search(description)):
        return None
    try:
        return tuple(map(str, ast.literal_eval(found[1])))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


# -- prompt_memory ---------------------------------------------------------------------------------


def _prompt_memory(request: Request) -> Contract | None:
    wanted: Mapping[str, Any] = (request.response_format or {}).get("json_schema") or {}
    if (wanted.get("schema") or {}).get("properties", {}).keys() != _NEW_PROMPT["properties"].keys():  # type: ignore[attr-defined]
        return None
    contract = structured_call().recognise(request)
    if contract is None:
        return None
    current = _current_prompt(request)

    def check(value: Mapping[str, Any]) -> Sequence[Problem]:
        if value["update_prompt"]:
            return [Problem("blank", _FULL, "$.new_prompt")] if _is_no_prompt(value["new_prompt"]) else ()
        # The host takes what stands there all the same, so it has to be put there.
        missing = "must be true here, with the full prompt: the current one if nothing is to change"
        return [Problem("blank", missing, "$.update_prompt")] if current is None else ()

    def undecided(value: Mapping[str, Any]) -> Sequence[Problem]:
        if value["update_prompt"] or _is_no_prompt(value["new_prompt"]) or value["new_prompt"] == current:
            return ()
        return [
            Problem("undecided", "is false, and yet there is another prompt: which of them is it?", "$.update_prompt")
        ]

    def render(value: Mapping[str, Any]) -> Mapping[str, Any]:
        return value if value["update_prompt"] else {**value, "new_prompt": current}

    return replace(contract, check=check, undecided=undecided, render=render)


def _current_prompt(request: Request) -> str | None:
    """The prompt in the installed LangMem's own words; ``None`` where another prompt makes it doubtful."""
    if request.roles != ("user",):
        return None
    said = request.text(0)
    for text in filter(None, (constant(_MODULE, name) for name in _TEMPLATES)):
        asked = template(text)
        before, after = asked.literals[:2]
        if asked.fields[:1] == ("current_prompt",) and asked.frames(said) and said.count(after) == 1:
            return said[len(before) : said.index(after)]
    return None

"""Each of Mem0's write calls against a real vLLM: is it accepted, obeyed and read?

A model of random weights will do: what is judged is the form of its replies, never what they say.
"""

# ruff: noqa: E402 (the imports wait for the decision whether to run)

from __future__ import annotations

import json
import os

import pytest

# Read while this file is imported: during a test the variables are gone (tests/conftest.py).
_SERVER = {field: os.environ.get(f"HYMEMORY_{field.upper()}") for field in ("base_url", "model", "api_key")}
if not _SERVER["base_url"]:
    pytest.skip(
        "no server: HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 python -m pytest tests/live, with a vLLM there "
        "(also read: HYMEMORY_MODEL, HYMEMORY_API_KEY)",
        allow_module_level=True,
    )
os.environ.setdefault("MEM0_TELEMETRY", "False")
pytest.importorskip("mem0")

from jsonschema import Draft202012Validator
from mem0.configs import prompts
from mem0.memory.utils import get_fact_retrieval_messages, parse_messages

from hymemory_adapters.core import exchange
from hymemory_adapters.core.events import WriteEvent
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.write_call import Contract, Verdict, judge
from hymemory_adapters.mem0.provider import HyMemoryLLM

_TALK = parse_messages([{"role": "user", "content": "I moved to Pune, and I drink black coffee every morning."}])
_FACTS = ["Moved to Pune", "Drinks black coffee every morning"]
_MEMORIES = [{"id": str(i), "text": text} for i, text in enumerate(("Lives in Oslo", "Likes tea", "Has a dog"))]

_NOT_OF_FORM = {"left_out", "same_id", "wrong_id"}
"""Problems that a model which writes noise may have with a reply that obeys its schema."""


def _write_calls() -> dict[str, list[str]]:
    """The contents of each request, by call and case, from the installed Mem0's own builders."""
    if build := getattr(prompts, "generate_additive_extraction_prompt", None):
        system = prompts.ADDITIVE_EXTRACTION_PROMPT
        return {
            "mem0.additive": [system, build(existing_memories=[], new_messages=_TALK)],
            "mem0.additive, memories listed": [system, build(existing_memories=_MEMORIES, new_messages=_TALK)],
        }
    return {
        "mem0.facts": list(get_fact_retrieval_messages(_TALK)),
        "mem0.update": [prompts.get_update_memory_messages([], _FACTS)],
        "mem0.update, memories listed": [prompts.get_update_memory_messages(_MEMORIES, _FACTS)],
    }


@pytest.mark.parametrize(("case", "contents"), _write_calls().items(), ids=_write_calls())
def test_accepted_obeyed_and_read(
    case: str, contents: list[str], heard: list[WriteEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[Reply, Contract, Verdict]] = []

    def overheard(reply: Reply, contract: Contract) -> Verdict:
        judged.append((reply, contract, judge(reply, contract)))
        return judged[-1][2]

    monkeypatch.setattr(exchange, "judge", overheard)
    llm = HyMemoryLLM({**_SERVER, "attempts": 1})
    roles = ("system", "user")[-len(contents) :]
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]

    returned = llm.generate_response(messages, response_format={"type": "json_object"})

    (event,) = heard
    assert len(judged) == 1, event.error
    reply, contract, verdict = judged[0]
    assert event.call == case.partition(",")[0]
    assert contract.schema is not None
    assert llm.writer.endpoint.form_of(contract.schema) == "json_schema", "the server refused the form or the schema"
    assert not event.attempts[0].transport_retries
    assert not reply.reasoning, "the model thinks"
    assert reply.finish_reason == "stop"
    value = json.loads(reply.text or "")
    Draft202012Validator(contract.schema.wire).validate(value)
    assert not verdict.normalisations
    assert {problem.rule for problem in verdict.problems} <= _NOT_OF_FORM
    if event.outcome != "salvaged":
        assert json.loads(returned) == value

"""Replies of public bug reports, reduced to the smallest body with the same defect, and what is right for each.

They come from memory frameworks, their peers and vLLM, with local or other non-OpenAI models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tests.support.scripted import Fail, Say

Right = Literal["take", "ask_again", "ask_for_more", "step_down"]


@dataclass(frozen=True)
class OpenCase:
    """One report.

    Attributes:
        name: the defect.
        report: where it was reported.
        right: what is right: ``take`` it as ``good``; ``ask_again`` (``ask_for_more``: with a larger budget) and
            take ``good``, which is the reply to that; ``step_down``: another form of the same request.
        text: the body; ``None`` where the content was null.
        good: a reply that fits the schema of the call.
        schema: of the reported call's reply.
        rule: of the problem that the body is.
        normalisations: which it takes, for ``take``.
        call: the write call of Mem0 that it was reported for, if it was.
        refusal: HTTP 400 that came first.
    """

    name: str
    report: str
    right: Right
    text: str | None
    good: Any
    schema: dict[str, Any]
    rule: str = "not_json"
    normalisations: tuple[str, ...] = ()
    finish_reason: str = "stop"
    reasoning: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    call: str = ""
    refusal: str = ""

    def says(self) -> list[Say | Fail]:
        """What the scripted endpoint plays: the refusal, if there is one, and the body."""
        calls = [
            {"id": f"call_{i}", "type": "function", "function": function} for i, function in enumerate(self.tool_calls)
        ]
        say = Say(self.text, self.finish_reason, self.reasoning, calls or None)
        return [Fail(400, self.refusal), say] if self.refusal else [say]


def _object(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": 50}


_TEXT = {"type": "string", "minLength": 1}
_FACTS = _object({"facts": _list(_TEXT)})
_MEMORIES = _object(
    {"memory": _list(_object({"id": _TEXT, "text": _TEXT, "attributed_to": _TEXT}, "id", "attributed_to"))}
)
_EVENT = {"type": "string", "enum": ["ADD", "UPDATE", "DELETE", "NONE"]}
_UPDATES = _object(
    {
        "memory": _list(
            _object(
                {"id": {"enum": ["0", "1", "2", "3", "4"]}, "text": _TEXT, "event": _EVENT, "old_memory": _TEXT},
                "old_memory",
            )
        )
    }
)
_ENTITIES = _object({"entities": _list(_object({"entity": _TEXT, "entity_type": _TEXT}))})
_EDGES = _object(
    {
        "edges": _list(
            _object(
                {
                    "relation_type": _TEXT,
                    "source_entity_id": {"type": "integer"},
                    "target_entity_id": {"type": "integer"},
                    "fact": _TEXT,
                }
            )
        )
    }
)
_FUNCTION = _object({"function": _TEXT, "params": {"type": "object"}})
_GRAPH = _object(
    {
        "nodes": _list(_object({"id": _TEXT, "name": _TEXT, "type": _TEXT, "description": _TEXT})),
        "edges": _list({"type": "object"}),
    }
)
_ENTITY_GRAPH = _object(
    {
        "entities": _list(_object({"name": _TEXT, "type": _TEXT, "desc": _TEXT})),
        "relationships": _list({"type": "object"}),
        "other_relationships": _list({"type": "object"}),
    }
)
_WHAT_WHEN = _object({"what": _TEXT, "when": _TEXT, "who": _TEXT, "fact_kind": _TEXT, "entities": _list(_TEXT)})
_PROFILE = _object({"profile": _list(_TEXT), "preferences": _list(_TEXT)}, "profile", "preferences")
_NODES = _object({"nodes": _list(_object({"id": _TEXT, "label": _TEXT, "file_type": _TEXT}))})
_OBSERVATION = _object({"content": _TEXT, "type": _TEXT})

_GOOD_FACTS = {"facts": ["Prefers direct trains", "Lives in Utrecht"]}
_GOOD_MEMORIES = {"memory": [{"id": "0", "text": "Alice is an engineer", "attributed_to": "user"}]}
_GOOD_UPDATES = {"memory": [{"id": "2", "text": "Has a chipped corner", "event": "UPDATE", "old_memory": "Is new"}]}
_GOOD_ENTITIES = {"entities": [{"entity": "ReLU", "entity_type": "task"}]}
_GOOD_EDGES = {"edges": [{"relation_type": "WORKS_AT", "source_entity_id": 0, "target_entity_id": 1, "fact": "Ann"}]}
_GOOD_FUNCTION = {"function": "core_memory_append", "params": {"content": "Horst, 42 years old"}}
_GOOD_GRAPH = {"nodes": [{"id": "n1", "name": "NLP", "type": "concept", "description": "a field"}], "edges": []}
_GOOD_ENTITY_GRAPH = {
    "entities": [{"name": "Scrooge", "type": "Person", "desc": "miser"}],
    "relationships": [],
    "other_relationships": [],
}
_GOOD_WHAT = {"what": "Conexão verificada", "when": "N/A", "who": "hermes", "fact_kind": "event", "entities": []}

OPEN_CASES: tuple[OpenCase, ...] = (
    OpenCase("empty", "mem0ai/mem0#3391", "ask_again", "", _GOOD_FACTS, _FACTS, "empty", call="mem0.facts"),
    OpenCase(
        "no_response_format", "mem0ai/mem0#4607", "ask_again",
        "Sure! The user now prefers slow-paced healing movies over sci-fi, and still dislikes horror.",
        _GOOD_FACTS, _FACTS, call="mem0.facts",
    ),
    OpenCase(
        "unexpected_end", "mem0ai/mem0#4061", "ask_for_more", '{"facts": ["Prefers direct trains", "Lives in Utre',
        _GOOD_FACTS, _FACTS, "truncated", call="mem0.facts",
    ),
    OpenCase(
        "truncated_array", "mem0ai/mem0#5428", "ask_for_more",
        '{"memory": [{"id": "0", "text": "Alice is an engineer"}, {"id": "1", "text": "Alice enjoys hiki',
        _GOOD_MEMORIES, _MEMORIES, "truncated", finish_reason="length", call="mem0.additive",
    ),
    OpenCase(
        "string_items", "mem0ai/mem0#5901", "ask_again",
        '{"memory": ["Alice owns a bike", {"Alice moved to Oslo": "2024"}, '
        '{"text": "Alice likes jazz", "attributed_to": "user"}]}',
        _GOOD_MEMORIES, _MEMORIES, "schema", call="mem0.additive",
    ),
    OpenCase(
        "fact_objects", "mem0ai/mem0#4083", "take",
        '{"facts": [{"fact": "User prefers dark mode"}, {"text": "Name is Alice"}]}',
        {"facts": ["User prefers dark mode", "Name is Alice"]}, _FACTS, "schema", ("fact_objects",), call="mem0.facts",
    ),
    OpenCase(
        "unknown_id", "mem0ai/mem0#3931", "ask_again",
        '{"memory": [{"id": "12", "text": "User has corner chipping on the inner insert", "event": "UPDATE", '
        '"old_memory": "Experiencing chipping"}]}',
        _GOOD_UPDATES, _UPDATES, "schema", call="mem0.update",
    ),
    OpenCase(
        "missing_event", "mem0ai/mem0#2043", "ask_again", '{"memory": [{"id": "0", "text": "User is learning Rust"}]}',
        _GOOD_UPDATES, _UPDATES, "schema", call="mem0.update",
    ),
    OpenCase(
        "ragged_tool_args", "mem0ai/mem0#4055", "ask_again", None, _GOOD_ENTITIES, _ENTITIES, "empty",
        finish_reason="tool_calls",
        tool_calls=(
            {"name": "extract_entities", "arguments": '{"entities": [{"entity": "CPU", "entity_type": "entity"}]}'},
            {
                "name": "extract_entities",
                "arguments": '{"entities": [{"entity": "ReLU", "entity_type": "task"}, {"entity": "task"}]}',
            },
        ),
    ),
    OpenCase(
        "reasoning_split", "mem0ai/mem0#4932", "ask_again", "", _GOOD_FACTS, _FACTS, "reasoning_only",
        finish_reason="length", reasoning="The user says that they...", call="mem0.facts",
    ),
    OpenCase(
        "reasoning_leak_in_json", "mem0ai/mem0#3918", "ask_again", '{\nth\n"facts": ["Allergic to peanuts"]}',
        _GOOD_FACTS, _FACTS, call="mem0.facts",
    ),
    OpenCase(
        "single_quotes", "mem0ai/mem0#1848", "ask_again",
        "{\"facts\" : ['Working on improving tennis skills', 'Dad\\'s name is Lee']}",
        _GOOD_FACTS, _FACTS, call="mem0.facts",
    ),
    OpenCase(
        "trailing_comma", "mem0ai/mem0#5623", "take", '{"memory": [{"text": "User likes pizza, pasta,]"},]}',
        {"memory": [{"text": "User likes pizza, pasta,]"}]}, _MEMORIES, "", ("trailing_comma",), call="mem0.additive",
    ),
    OpenCase(
        "needs_word_json", "mem0ai/mem0#3008", "step_down", '{"facts": []}', {"facts": []}, _FACTS, "",
        refusal="'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        call="mem0.facts",
    ),
    OpenCase(
        "hard_cap", "getzep/graphiti#1869", "ask_for_more",
        '{"edges": [{"relation_type": "WORKS_AT", "source_entity_id": 0, "target_entity_id": 1, "fact": "Ann works at',
        _GOOD_EDGES, _EDGES, "truncated", finish_reason="length",
    ),
    OpenCase(
        "two_objects", "letta-ai/letta#177", "ask_again",
        '{"function": "core_memory_append", "params": {"name": "human", "content": "Horst, 42 years old, from '
        'Germany."}}\n{"function": "send_message", "params": {"message": "Saved!"}}',
        _GOOD_FUNCTION, _FUNCTION, "ambiguous",
    ),
    OpenCase(
        "brace_chat", "letta-ai/letta#278", "ask_again",
        "{Hey, thanks for login! How can I assist you today? :D\n"
        "### Inner Monologue: w00t! First time user! \U0001f680\n}",
        _GOOD_FUNCTION, _FUNCTION,
    ),
    OpenCase(
        "code_in_value", "letta-ai/letta#729", "ask_again",
        '{"function": "archival_memory_insert", "params": {"content": '
        '"std::regex r(\\"\\d+\\"); // C:\\Users\\new"}}',
        _GOOD_FUNCTION, _FUNCTION,
    ),
    OpenCase(
        "schema_mode_rejected", "topoteretes/cognee-rs#66", "step_down",
        '{"nodes": [{"id": "n1", "name": "NLP", "type": "concept"}], "edges": []}', _GOOD_GRAPH, _GRAPH, "schema",
        refusal="This model does not support response format `json_schema`.",
    ),
    OpenCase(
        "wrapper_key", "circlemind-ai/fast-graphrag#20", "take",
        '{"Model": {"entities": [{"name": "Scrooge", "type": "Person", "desc": "miser"}], "relationships": [], '
        '"other_relationships": []}}',
        _GOOD_ENTITY_GRAPH, _ENTITY_GRAPH, "", ("unwrapped",),
    ),
    OpenCase(
        "markdown_list", "vectorize-io/hindsight#1274", "ask_again",
        "1. **what**: Conexão do sistema de memória verificada\n2. **when**: N/A\n3. **who**: hermes (agente de IA)\n"
        '4. **fact_kind**: event\n5. **entities**: ["hermes", "sistema de memória"]',
        _GOOD_WHAT, _WHAT_WHEN, "schema",
    ),
    OpenCase(
        "required_dropped", "vectorize-io/hindsight#1877", "ask_again", "I don't have information about that.",
        _GOOD_WHAT, _WHAT_WHEN,
    ),
    OpenCase(
        "envelope_list", "volcengine/OpenViking#3508", "ask_again",
        '```json\n{"current_status": "idle", "memories": [{"content": "Bought a kayak", "type": "event"}]}\n```',
        {"profile": ["Owns a kayak"], "preferences": []}, _PROFILE, "schema",
    ),
    OpenCase(
        "content_null_json_in_reasoning", "vllm-project/vllm#48863", "take", None, {"memory": []}, _MEMORIES, "",
        ("json_in_reasoning",), reasoning='{"memory": []}', call="mem0.additive",
    ),
    OpenCase(
        "whitespace_loop", "vllm-project/vllm#38696", "ask_again", '{\n"memory":\n ' + "\n  \n\n " * 39 + "\n  \n",
        _GOOD_MEMORIES, _MEMORIES, "looping", finish_reason="length", call="mem0.additive",
    ),
    OpenCase(
        "toolcall_tag_in_args", "vllm-project/vllm#23323", "ask_again", None,
        {"content": "Likes tea"}, _object({"content": _TEXT}), "empty", finish_reason="tool_calls",
        tool_calls=(
            {
                "name": "Memory",
                "arguments": '\n<tool_call>\n{"name": "Memory", "arguments": {"content": "Likes tea"}}\n</tool_call>\n',
            },
        ),
    ),
    OpenCase(
        "cjk_curly_structure", "Graphify-Labs/graphify#2286", "ask_again",
        "{“nodes”:[{“id”:“0024”,“label”:“协议（含 DynamoDB 传输）“,”file_type”:”document”}]}",
        {"nodes": [{"id": "0024", "label": "协议“含”", "file_type": "document"}]}, _NODES,
    ),
    OpenCase(
        "mixed_quote", "TencentCloud/TencentDB-Agent-Memory#1220", "ask_again",
        '{"content": "Der Nutzer sagt „bis morgen" beim Abschied", "type": "episodic"}',
        {"content": "Sagt „bis morgen“", "type": "episodic"}, _OBSERVATION, "truncated",
    ),
    OpenCase(
        "refusal_as_memory", "tomcounsell/ai#1212", "ask_again",
        "I don't see a session response to analyze. Could you share the text you'd like me to extract observations "
        "from?",
        {"content": "Likes tea", "type": "episodic"}, _OBSERVATION,
    ),
)  # fmt: skip

"""Mem0's graph memory for the tests: embedded Kuzu, and a model that answers each request by what it is asked."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.mem0.host import add_all, facts_reply

GRAPH_CALLS = ("mem0.graph_entities", "mem0.graph_relations", "mem0.graph_deletions")
TOOLS = {
    "extract_entities": "mem0.graph_entities",
    "establish_relationships": "mem0.graph_relations",
    "establish_relations": "mem0.graph_relations",
    "delete_graph_memory": "mem0.graph_deletions",
}
STORE = {"graph_store": {"provider": "kuzu", "config": {"db": ":memory:"}}}

Reply = Any  # a text, a Say, a Fail, or what makes one of the request


def call_of(body: dict[str, Any]) -> str:
    """Which of Mem0's requests this is, by its schema."""
    schema = body["response_format"]["json_schema"]
    if schema["name"] != "tool_calls":
        return str(schema["name"]).replace("_", ".", 1)
    return TOOLS[tool_of(body)]


def tool_of(body: dict[str, Any]) -> str:
    """The one tool that a request lets the model call."""
    schema = body["response_format"]["json_schema"]["schema"]
    return str(schema["properties"]["tool_calls"]["items"]["properties"]["name"]["const"])


def calls_reply(*calls: tuple[str, dict[str, Any]]) -> str:
    """A good reply to a request with tools."""
    return json.dumps({"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]})


def entities(**types: str) -> str:
    items = [{"entity": name, "entity_type": kind} for name, kind in types.items()]
    return calls_reply(("extract_entities", {"entities": items}))


def _relation(triple: str) -> dict[str, str]:
    return dict(zip(("source", "relationship", "destination"), triple.split(" -- "), strict=True))


def relations(*triples: str, tool: str = "establish_relationships") -> str:
    return calls_reply((tool, {"entities": [_relation(triple) for triple in triples]}))


def deletions(*triples: str) -> str:
    return calls_reply(*(("delete_graph_memory", _relation(triple)) for triple in triples))


class Model:
    """Answers by call, in the order of each call's replies; the last one again and again.

    Mem0 fills both stores at once, in two threads, so the order of its requests is nobody's.
    """

    def __init__(self, **replies: list[Reply]) -> None:
        self.asked: list[str] = []
        self._lock = threading.Lock()
        self._replies: dict[str, list[Reply]] = {
            "facts": [facts_reply()],
            "update": [add_all],
            "graph_entities": [entities()],
            "graph_relations": [relations()],
            "graph_deletions": [deletions()],
            **replies,
        }

    def __call__(self, body: dict[str, Any]) -> Any:
        call = call_of(body)
        with self._lock:
            self.asked.append(call)
            replies = self._replies[call.partition(".")[2]]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return reply(body) if callable(reply) else reply

    def count(self, call: str) -> int:
        """How many requests there were of a call."""
        return self.asked.count(call)


def triples(memory: Any, user: str) -> list[str]:
    """What the graph holds for a user, sorted."""
    found = memory.graph.get_all({"user_id": user})
    return sorted(f"{row['source']} -- {row['relationship']} -- {row['target']}" for row in found)

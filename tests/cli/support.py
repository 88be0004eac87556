"""A scripted server with vLLM's pages beside the chat, and ways to run the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from hymemory_adapters.cli.app import app
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import OnLost, WriteCall
from hymemory_adapters.registry import Host
from tests.support.scripted import Fail, Recorded, Say, ScriptedEndpoint, _Handler

ROOT = Path(__file__).parents[2]


@dataclass
class Traits:
    """What kind of server it is; as it stands, one where all is well."""

    models: tuple[str, ...] = ("hy-memory",)
    context: int | None = 32768
    key: str = ""
    """The key that ``/v1`` asks for."""
    version: str | None = "0.32.0"
    tokenize: bool = True
    obeys: bool = True
    """Whether a schema constrains the reply."""
    knows_schemas: bool = True
    thinks: bool = False
    """Whether the template opens thinking, whatever the request says."""
    misfiles: bool = False
    """Whether the parser expects thinking that the prompt has closed."""
    spaces: bool = False
    """Whether the grammar allows white space."""
    loops: bool = False
    """Whether the model falls into it by itself."""
    biased: bool = True
    """Whether ``logit_bias`` works."""
    empty: bool = False
    """Whether constrained replies are empty."""
    lists: bool = True
    """Whether ``/v1/models`` exists."""
    says_key: bool = False
    """Whether its errors quote the key."""
    status: int = 0
    """Answer everything with this status."""


class PretendVllm(ScriptedEndpoint):
    """A server as ``hymemory doctor`` meets it."""

    def __init__(self, **traits: Any) -> None:
        self.traits = Traits(**traits)
        super().__init__(self._chat, models=self.traits.models, context=self.traits.context)
        self.models_fail = not self.traits.lists
        self._server.RequestHandlerClass = _PretendHandler

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    def _chat(self, body: dict[str, Any]) -> Say | Fail:
        traits = self.traits
        if body["model"] not in traits.models:
            return Fail(404, f"The model `{body['model']}` does not exist.")
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        if schema and not traits.knows_schemas:
            return Fail(400, "response_format of type json_schema is not supported")
        biased, most = "logit_bias" in body and traits.biased, body["max_tokens"]
        if schema and traits.empty:
            return Say("", tokens_out=1)
        if schema and traits.obeys:
            text = json.dumps(_instance(schema), separators=(",", ":"))
            if traits.loops or (biased and traits.spaces):
                return Say("{" + "\n" * (most - 1), "length")
        else:
            text = "\n" * most if biased else "Of course: a zebra is an animal."
        if traits.thinks:
            return Say(None, "length", reasoning="The user wants")
        finish = "stop" if len(text) // 4 < most and not (biased and not schema) else "length"
        if traits.misfiles:
            return Say(None, finish, reasoning=text)
        return Say(text if finish == "stop" else text[: most * 4], finish)

    def page(self, recorded: Recorded) -> tuple[int, Any] | None:
        """Answer the pages beside the chat; ``None`` leaves a request to the script."""
        traits = self.traits
        if traits.status:
            return traits.status, {"error": {"message": "busy"}}
        key = recorded.headers.get("authorization", "").removeprefix("Bearer ")
        if recorded.path.startswith("/v1") and traits.key and key != traits.key:
            said = f"Incorrect key: {key}" if traits.says_key else "Unauthorized"
            return 401, {"error": said}
        if recorded.path == "/version" and traits.version:
            return 200, {"version": traits.version}
        if recorded.path == "/tokenize" and traits.tokenize:
            return 200, self._tokens(recorded.body)
        return None if recorded.path in ("/v1/models", "/v1/chat/completions") else (404, {"detail": "Not Found"})

    def _tokens(self, body: dict[str, Any]) -> dict[str, Any]:
        if "prompt" in body:
            strings = list(body["prompt"])
            return {"count": len(strings), "tokens": [ord(character) for character in strings]}
        text = "".join(message["content"] for message in body["messages"])
        off = (body.get("chat_template_kwargs") or {}).get("reasoning_effort") == "no_think" and not self.traits.thinks
        strings = ["<user>", *(text[i : i + 4] for i in range(0, len(text), 4)), "<assistant>", "<think>"]
        strings += ["</think>"] if off else []
        seen = {"token_strs": strings} if body.get("return_token_strs") else {}
        return {"count": len(strings), "tokens": list(range(len(strings))), **seen}


class _PretendHandler(_Handler):
    def do_GET(self) -> None:
        if not self._answered(b""):
            super().do_GET()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._answered(raw):
            self.rfile = _Again(raw)  # type: ignore[assignment]
            super().do_POST()
            self.rfile = self.connection.makefile("rb", -1)

    def _answered(self, raw: bytes) -> bool:
        owner = self.server.owner
        assert isinstance(owner, PretendVllm)
        self.path = "/" + self.path.partition("://")[2].partition("/")[2] if "://" in self.path else self.path
        recorded = Recorded(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        answer = owner.page(recorded)
        if answer is None:
            return False
        owner.requests.append(recorded)
        self._answer(*answer)
        return True


class _Again:
    """A body that has been read already."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def read(self, _: int) -> bytes:
        return self.raw

    def close(self) -> None:
        pass


def _instance(schema: dict[str, Any]) -> Any:
    """The smallest value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _instance(schema["properties"][name]) for name in schema.get("required", ())}
    return {"array": [], "string": "x", "boolean": True}[schema["type"]]


# -- a host's row, as a framework that comes later adds one ----------------------------------------

PROMPT = "Write down what is worth remembering. " * 400


def calls() -> tuple[WriteCall, ...]:
    schema = Schema({"type": "object", "properties": {"notes": {"type": "array"}}, "required": ["notes"]}, name="notes")
    return (WriteCall("notes.write", lambda _: None, OnLost.RAISE, "writes notes", typical=schema),)


def hiding_calls() -> tuple[WriteCall, ...]:
    return (WriteCall("notes.write", lambda _: None, swallowed="Notes hides errors of this call."),)


def printing_calls() -> tuple[WriteCall, ...]:
    print("Welcome to Notes")
    return calls()


def prompts() -> dict[str, list[dict[str, Any]]]:
    return {"notes.short": [{"role": "user", "content": "hello"}], "notes.write": [{"role": "user", "content": PROMPT}]}


NOTES = Host(
    name="notes",
    distribution="typer",  # installed wherever these tests run
    supported=">=0",
    tested=("1.0",),
    installer="tests.cli.support:none",
    calls="tests.cli.support:calls",
    prompts="tests.cli.support:prompts",
)
ONLY_NOTES = """
from hymemory_adapters.registry import HOSTS
from tests.cli.support import NOTES
HOSTS.clear()
HOSTS["notes"] = NOTES
from hymemory_adapters.cli import main
main()
"""

# -- running it ------------------------------------------------------------------------------------


def invoke(*args: str) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(app, list(args))


def run(
    *args: str, code: str = "from hymemory_adapters.cli import main; main()", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HYMEMORY_")}
    clean |= {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}
    clean |= {"MEM0_TELEMETRY": "False", "PYTHONIOENCODING": "utf-8", **env}
    return subprocess.run(
        [sys.executable, "-c", code, *args], env=clean, capture_output=True, text=True, timeout=120, check=False
    )

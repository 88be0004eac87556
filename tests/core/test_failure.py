"""What a failed request means: the error bodies of the servers that people run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import openai
import pytest

from hymemory_adapters.core.failure import Failure, classify
from tests.support.scripted import Fail, ScriptedEndpoint

SAID = "Alice whispered that her safe opens with 4711"
QUOTED = "(the server's words quote the request and are left out)"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(Fail(400)) as endpoint:
        yield endpoint


def failed(
    server: ScriptedEndpoint, status: int, body: Any, *, constrained: bool = True, messages: Any = (), **headers: str
) -> Failure:
    """What the openai package makes of an error that came over the wire."""
    server.play(Fail(status, body=body, headers=headers))
    client = openai.OpenAI(api_key="k", base_url=server.url, max_retries=0)
    with client, pytest.raises(openai.OpenAIError) as error:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    return classify(error.value, constrained=constrained, messages=messages)


def vllm(message: str, param: str | None = None, code: int = 400, kind: str = "BadRequestError") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def llama(message: str, code: int = 400, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind}}


OPENAI_FORM = (
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about "
    "supported models at the Structured Outputs guide"
)
OPENAI_SCHEMA = (
    "Invalid schema for response_format 'reply': In context=(), 'additionalProperties' is required to be supplied and "
    "to be false."
)
OPENAI_CONTEXT = (
    "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (6000 in the messages, "
    "4000 in the completion). Please reduce the length of the messages or completion."
)
VLLM_CONTEXT = (
    "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, "
    "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
    "(parameter=input_tokens, value=8193)"
)
VLLM_BUDGET = (
    "max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens. "
    "(parameter=max_tokens, value=9000)"
)
OLD_VLLM_CONTEXT = (
    "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens "
    "and your request has 1200 input tokens (9000 > 8192 - 1200)."
)
SGLANG_CONTEXT = (
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 "
    "tokens: 5000 tokens from the input messages and 4000 tokens for the completion."
)
LLAMA_CONTEXT = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)

BODIES: dict[str, tuple[int, Any, str]] = {
    "vLLM: xgrammar": (400, vllm("The provided JSON schema contains features not supported by xgrammar."), "schema"),
    "vLLM: grammar": (400, vllm("Failed to transform json schema into a grammar: [15:32:24] <path>:4944"), "schema"),
    "vLLM: guidance": (400, vllm('Grammar error: Unimplemented keys: ["uniqueItems"]'), "schema"),
    "vLLM: no constraint": (400, vllm("You must use one kind of structured outputs constraint but none"), "form"),
    "vLLM: model": (404, vllm("The model `x` does not exist. Valid aliases: hy-memory.", "model", 404), "model"),
    "vLLM: key": (401, {"error": "Unauthorized"}, "key"),
    "vLLM: prompt": (400, vllm(VLLM_CONTEXT, "input_tokens"), "context"),
    "vLLM: budget": (400, vllm(VLLM_BUDGET, "max_tokens"), "context"),
    "vLLM 0.10: budget": (400, vllm(OLD_VLLM_CONTEXT), "context"),
    "vLLM: temperature": (400, vllm("temperature must be in [0, 2], got 9.0.", "temperature"), "request"),
    "vLLM: engine": (500, vllm("EngineCore encountered an issue.", None, 500, "InternalServerError"), "transport"),
    "SGLang: grammar": (
        400,
        {"object": "error", "message": "Failed to compile json grammar: invalid schema", "type": "BadRequestError"},
        "schema",
    ),
    "SGLang: context": (400, {"object": "error", "message": SGLANG_CONTEXT, "type": "BadRequestError"}, "context"),
    "llama.cpp: schema": (400, llama('JSON schema conversion failed:\nUnrecognized schema: {"x":1}'), "schema"),
    "llama.cpp: named schema": (400, llama('"json_schema": JSON schema conversion failed:\nx'), "schema"),
    "llama.cpp: form": (
        400,
        llama('response_format type must be one of "text" or "json_object", but got: json_schema'),
        "form",
    ),
    "llama.cpp: context": (400, llama(LLAMA_CONTEXT, kind="exceed_context_size_error"), "context"),
    "llama.cpp: loading": (503, llama("Loading model", 503, "unavailable_error"), "transport"),
    "LM Studio: form": (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}, "form"),
    "OpenAI: form": (400, vllm(OPENAI_FORM, "response_format", kind="invalid_request_error"), "form"),
    "OpenAI: schema": (400, vllm(OPENAI_SCHEMA, "response_format", kind="invalid_request_error"), "schema"),
    "OpenAI: context": (400, vllm(OPENAI_CONTEXT, "messages", kind="invalid_request_error"), "context"),
    "OpenAI: quota": (429, vllm("You exceeded your current quota", kind="insufficient_quota"), "transport"),
    "Groq: form": (400, vllm("This model does not support response format `json_schema`. See supported"), "form"),
    "DeepSeek: form": (400, vllm("This response_format type is unavailable now"), "form"),
    "FastAPI: detail": (422, {"detail": "response_format is not supported"}, "form"),
    "FastAPI: list": (422, {"detail": [{"loc": ["body", "temperature"], "msg": "too large"}]}, "request"),
    "plain text": (400, b"response_format: unknown variant", "form"),
    "HTML": (400, b"<html><h1>400 Bad Request</h1></html>", "request"),
    "HTML of a proxy": (502, b"<html><h1>502 Bad Gateway</h1></html>", "transport"),
    "nothing": (400, b"", "request"),
    "forbidden": (403, {"message": "forbidden"}, "key"),
    "no such page": (404, {"detail": "Not Found"}, "model"),
    "max_tokens named beside the words": (400, vllm("too large", "max_tokens"), "context"),
    "input_tokens named beside the words": (400, vllm("too large", "input_tokens"), "context"),
}
# Each of the words that decide, alone: servers word the rest as they like.
WORDS: dict[str, str] = {
    "The JSON schema contains an unknown keyword": "schema",
    "json_schema contains an unknown keyword": "schema",
    "jsonschema contains an unknown keyword": "schema",
    "output schema contains an unknown keyword": "schema",
    "features not supported by outlines: oneOf": "schema",
    "cannot turn it into a grammar": "schema",
    "grammar error at line 1": "schema",
    "Invalid schema: no type": "schema",
    "Invalid JSON schema: no type": "schema",
    "schema conversion failed": "schema",
    "failed to compile grammar": "schema",
    "Failed to parse JSON grammar": "schema",
    "Unsupported schema": "schema",
    "unsupported JSON schema": "schema",
    "this schema is not supported": "schema",
    "the schema given is invalid": "schema",
    "the schema has unsupported keys": "schema",
    "schema invalid": "schema",
    "json_schema is not supported": "form",  # the form, by its name: no other schema would fare better
    "Response format is unknown here": "form",
    "json_schema is unknown here": "form",
    "json_object is unknown here": "form",
    "structured output is unknown here": "form",
    "structured_output is unknown here": "form",
    "guided_json is unknown here": "form",
    "JSON mode is unknown here": "form",
    "context length exceeded": "context",
    "Context window exceeded": "context",
    "context size exceeded": "context",
    "beyond max_model_len": "context",
    "max_tokens is too large": "context",
    "max_completion_tokens is too large": "context",
    "maximum number of tokens exceeded": "context",
    "maximum tokens exceeded": "context",
    "prompt is too long": "context",
    "too many input_tokens": "context",
}


@pytest.mark.parametrize(("words", "kind"), WORDS.items(), ids=WORDS)
def test_the_words_that_decide(server: ScriptedEndpoint, words: str, kind: str) -> None:
    assert failed(server, 400, vllm(words)).kind == kind


@pytest.mark.parametrize(("status", "body", "kind"), BODIES.values(), ids=BODIES)
def test_what_an_error_body_means(server: ScriptedEndpoint, status: int, body: Any, kind: str) -> None:
    failure = failed(server, status, body)
    assert (failure.kind, failure.status) == (kind, status)
    if kind != "context":
        assert failure.context is failure.prompt is None
    if body:
        assert failure.detail
    assert "\n" not in failure.detail


STATUSES = dict.fromkeys((408, 409, 425, 429, 500, 501, 529), "transport") | dict.fromkeys(
    (402, 405, 410, 426), "request"
)


@pytest.mark.parametrize(("status", "kind"), STATUSES.items(), ids=map(str, STATUSES))
def test_a_status_alone(server: ScriptedEndpoint, status: int, kind: str) -> None:
    assert (failed(server, status, {}).kind, failed(server, status, {}).status) == (kind, status)


@pytest.mark.parametrize("name", [name for name, (_, _, kind) in BODIES.items() if kind in ("form", "schema")])
def test_without_a_constraint_of_ours_no_constraint_is_to_blame(server: ScriptedEndpoint, name: str) -> None:
    assert failed(server, *BODIES[name][:2], constrained=False).kind in ("request", "context")


@pytest.mark.parametrize(
    ("message", "context", "prompt"),
    [
        (VLLM_CONTEXT, 8192, 8193),
        (VLLM_BUDGET, 8192, None),
        (OLD_VLLM_CONTEXT, 8192, 1200),
        (OPENAI_CONTEXT, 8192, 6000),
        (SGLANG_CONTEXT, 8192, 5000),
        ("The context window is 512 tokens, your prompt contains 700", 512, 700),
        ("The Context Window is 512 tokens, your Input has 700", 512, 700),
        ("max_model_len=512, the input contains 700 tokens", 512, 700),
        ("Your prompt contains too many tokens for the context window", None, None),
        ("too many tokens in the messages for the context length", None, None),
    ],
    ids=[
        "vLLM prompt",
        "vLLM budget",
        "vLLM 0.10",
        "OpenAI",
        "SGLang",
        "window",
        "capitals",
        "input",
        "no number",
        "none",
    ],
)
def test_the_lengths_that_a_server_names(
    server: ScriptedEndpoint, message: str, context: int | None, prompt: int | None
) -> None:
    failure = failed(server, 400, vllm(message))
    assert (failure.kind, failure.context, failure.prompt) == ("context", context, prompt)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("2", 2, 2),
        ("0.5", 0.5, 0.5),
        ("-1", 0, 0),
        ("soon", None, None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 2015 07:28:00", 0, 0),
        (format_datetime(datetime.now(timezone.utc) + timedelta(days=2), usegmt=True), 86400, 2 * 86400),
    ],
    ids=["whole", "part", "below zero", "nonsense", "past", "past without a zone", "in two days"],
)
def test_retry_after(server: ScriptedEndpoint, header: str, least: float | None, most: float | None) -> None:
    seconds = failed(server, 429, {}, **{"Retry-After": header}).retry_after
    assert seconds is None if least is None else least <= seconds <= most


# -- the conversation stays out ---------------------------------------------------------------------

SHORT, FOREIGN = "PIN 4711", "爱丽丝低声说她的保险箱密码是四七一一"


def prompt(line: str) -> str:
    """A host's long prompt, with what was said in a line of its own."""
    return f"You note what people say.\nInput:\n{line}\nOutput: JSON"


ECHOES: dict[str, tuple[str, Any]] = {
    "word for word": (SAID, vllm(f"invalid message: {SAID}")),
    "in a list": (SAID, vllm(f"1 validation error: {{'input': [{{'role': 'user', 'content': '{SAID}'}}]}}")),
    "white space changed": (SAID, vllm(f"bad: {SAID.replace(' ', chr(10) + '  ')}")),
    "cut": (SAID, vllm(f"bad: {SAID[:30]}...")),
    "short": (SHORT, vllm(f"Input should be a list, got '{SHORT}'")),
    "four letters": ("4711", vllm("Input should be a list, got '4711'")),
    "as little as counts": (SAID, vllm(f"bad: {SAID[:24]}")),
    "another script": (FOREIGN, vllm(f"bad: {FOREIGN}")),
    "escaped": (FOREIGN, vllm(f"bad: {json.dumps(FOREIGN)}")),
    "a detail list": (FOREIGN, {"detail": [{"input": FOREIGN, "msg": "bad"}]}),
    "plain text": (SAID, SAID.encode()),
    "parts": ([{"type": "text", "text": SAID}], vllm(f"bad: {SAID}")),
    "a line of a prompt": (prompt("My PIN is 4711"), vllm('blocked by policy: "My PIN is 4711"')),
    "a line cut from its speaker": (prompt("user: I am Bob, HIV+"), vllm("blocked: I am  Bob, HIV+")),
    "as short as a phrase": (prompt("I am Bob"), vllm("blocked: I am Bob")),
    "a quotation": (prompt('[{"role": "user", "content": "My PIN is 4711"}]'), vllm("blocked: My PIN is 4711")),
    "a literal": (prompt("['My PIN is 4711']"), vllm("blocked: My PIN is 4711")),
    "a code": (prompt("`My PIN is 4711`"), vllm("blocked: My PIN is 4711")),
    "a literal's line": (prompt(r"Rules:\nMy PIN is 4711\nEnd"), vllm("blocked: My PIN is 4711")),
    "a short line, another script": (prompt(f"user: {FOREIGN[:4]}"), vllm(f"blocked: {FOREIGN[:4]}")),
    "a short line, escaped": (prompt("\u00e9t\u00e9s"), vllm("blocked: " + json.dumps("\u00e9t\u00e9s"))),
    "cut and escaped": (FOREIGN, vllm(f"blocked: {json.dumps(FOREIGN)[:40]}")),
    "cut by us": (SHORT, vllm("na " * 98 + SHORT)),
}


@pytest.mark.parametrize(("content", "body"), ECHOES.values(), ids=ECHOES)
def test_words_that_quote_the_request_are_left_out(server: ScriptedEndpoint, content: Any, body: Any) -> None:
    assert failed(server, 400, body, messages=[{"role": "user", "content": content}]).detail == QUOTED


SENTENCES: dict[str, Any] = {
    "message": {"message": "no such thing"},
    "an error with a message": {"error": {"message": "no such thing"}},
    "an error in words": {"error": "no such thing"},
    "detail": {"detail": "no such thing"},
    "a table of details": {"detail": {"error": "no such thing"}},
    "text": b"no  such\nthing",
}


@pytest.mark.parametrize("body", SENTENCES.values(), ids=SENTENCES)
def test_the_sentence_is_dug_out(server: ScriptedEndpoint, body: Any) -> None:
    assert failed(server, 400, body).detail == "no such thing"


NO_ECHOES: dict[str, str | None] = {
    "empty": "",
    "null": None,
    "a letter": "a",
    "a word": "it",
    "long": SAID,
    "a word in a prompt": prompt("temperature"),
    "few letters in a prompt": prompt("must be"),
    "a few letters of another script": prompt("\u00e9t\u00e9"),
}


@pytest.mark.parametrize("content", NO_ECHOES.values(), ids=NO_ECHOES)
def test_other_words_are_kept(server: ScriptedEndpoint, content: Any) -> None:
    message = "temperature must be in [0, 2], got 9.0 (\u00e9t\u00e9)."
    assert failed(server, 400, vllm(message), messages=[{"role": "user", "content": content}]).detail == message


def test_a_scrap_of_the_request_is_no_quotation(server: ScriptedEndpoint) -> None:
    message = f"bad: {SAID[:23]}"
    assert failed(server, 400, vllm(message), messages=[{"role": "user", "content": SAID}]).detail == message


def test_long_words_are_cut(server: ScriptedEndpoint) -> None:
    assert len(failed(server, 400, vllm("na " * 5000)).detail) == 300

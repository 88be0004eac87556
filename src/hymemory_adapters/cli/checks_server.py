"""The checks of the server: is it there, does it take the key, serve the model, hold the prompts?"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from hymemory_adapters.cli.check import Context, Finding, Verdict
from hymemory_adapters.cli.proxies import Proxy, is_near, proxy_for
from hymemory_adapters.core.advice import SERVE
from hymemory_adapters.core.budget import SMALLEST_REPLY, estimated_prompt
from hymemory_adapters.core.failure import Failure

if TYPE_CHECKING:
    from hymemory_adapters.cli.server import Server
    from hymemory_adapters.settings import WriterSettings

KNOWN_VLLM = ("0.31.0", "0.32.0")
"""The versions that are known to work."""


def tools(context: Context) -> tuple[WriterSettings, Server]:
    """The settings and the server, which every check but the first has."""
    assert context.settings is not None
    assert context.server is not None
    return context.settings, context.server


def failed(context: Context, failure: Failure, what: str = "") -> Finding:
    """Say that a request brought nothing, and what to do."""
    settings, server = tools(context)
    url, said = settings.shown_url, f": {failure.detail}" if failure.detail else ""
    status = f" (HTTP {failure.status})" if failure.status else ""
    about = f"{what}: " if what else ""
    match failure.kind:
        case "refused":
            text = f"nothing answers at {url} (connection refused)"
            do = f"start the server ({SERVE}), or set HYMEMORY_BASE_URL (the URL is from {settings.source('base_url')})"
        case "key":
            whose = f"the one from {settings.source('api_key')} is wrong there" if settings.api_key else "none is set"
            text, do = f"the server refused the key{status}", f"set HYMEMORY_API_KEY to the server's key: {whose}"
        case "model" if settings.model not in server.endpoint.served:
            text = f"the server has no chat completions for {settings.model!r}{status}{said}"
            do = "check the model's name, and whether the URL should end in /v1"
        case "read_timeout":
            text = f"the server took the request and did not answer in time, {settings.timeout:g} seconds at most"
            do = "look at its log and load; HYMEMORY_TIMEOUT gives it more time"
        case "transport" if failure.status:
            text = f"the server is not ready{status}{said}"
            do = "wait until it has loaded the model, or look at its log"
        case "transport":
            text = f"no answer from {url}{said}"
            do = f"check the URL (from {settings.source('base_url')}), the network, and for https the certificate"
        case "context":
            text, do = f"the request does not fit the context{said}", "start the server with a larger --max-model-len"
        case _:
            text, do = f"the server refused the request{status}{said}", f"look at the log of the server at {url}"
    return Finding(Verdict.BAD, about + text, do, {"failure": failure.kind, "status": failure.status})


# -- reachable -------------------------------------------------------------------------------------


def reachable(context: Context) -> Sequence[Finding]:
    """Whether anything answers, and whether a proxy is in the way."""
    settings, server = tools(context)
    proxy = None if server.is_direct else proxy_for(settings.base_url, context.environ)
    answer = context.listed = server.models()
    if proxy is not None and is_near(settings.base_url):
        return _through(context, proxy, answered=isinstance(answer, str) or answer.status == 401)
    if isinstance(answer, Failure) and answer.kind not in ("key", "model"):
        return [failed(context, answer)]
    way = f" through the proxy {proxy.shown} ({proxy.variable})" if proxy else ""
    return [Finding(Verdict.OK, f"{settings.shown_url} answers{way}", data={"proxy": proxy and proxy.shown})]


def _through(context: Context, proxy: Proxy, *, answered: bool) -> Sequence[Finding]:
    settings, _ = tools(context)
    host = urlsplit(settings.base_url).hostname or ""
    do, data = f"set NO_PROXY={host} where the app runs", {"proxy": proxy.shown, "variable": proxy.variable}
    if answered:
        text = f"requests to {host} go through the proxy {proxy.shown} ({proxy.variable}), and with them conversations"
        return [Finding(Verdict.WARNING, text, do, data)]
    there = "something listens there" if _listens(settings.base_url) else "nothing listens there either"
    text = f"the proxy {proxy.shown} ({proxy.variable}) is in the way of {settings.shown_url}; without it, {there}"
    return [Finding(Verdict.BAD, text, do, data)]


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), 2).close()
    except OSError:
        return False
    return True


# -- version, key, model ---------------------------------------------------------------------------


def version(context: Context) -> Sequence[Finding]:
    """Which version the server has, where it says so."""
    _, server = tools(context)
    answer = server.get("/version")
    said = answer.get("version") if isinstance(answer, dict) else None
    if not isinstance(said, str):
        return [Finding(Verdict.UNKNOWN, f"the server does not say (known to work: vLLM {_listed(KNOWN_VLLM)})")]
    owner = context.listed if isinstance(context.listed, str) else ""
    return [judge_version(said, owner)]


def judge_version(said: str, owner: str) -> Finding:
    """Say what a server's version is worth."""
    name = "vLLM" if owner in ("vllm", "") else owner
    data = {"version": said}
    try:
        parsed = Version(said)
    except InvalidVersion:
        return Finding(Verdict.UNKNOWN, f"{name} {said} (known to work: vLLM {_listed(KNOWN_VLLM)})", data=data)
    if name != "vLLM" or parsed.public in KNOWN_VLLM:
        return Finding(Verdict.OK, f"{name} {said}", data=data)
    if parsed > Version(KNOWN_VLLM[-1]):
        newer = f"newer than those known to work ({_listed(KNOWN_VLLM)}); the steps below tell"
        return Finding(Verdict.OK, f"{name} {said}, {newer}", data=data)
    return Finding(Verdict.WARNING, f"{name} {said} was not tried", f"known to work: vLLM {_listed(KNOWN_VLLM)}", data)


def key(context: Context) -> Sequence[Finding]:
    """Whether the server takes the key."""
    settings, _ = tools(context)
    if isinstance(context.listed, Failure) and context.listed.kind == "key":
        return [failed(context, context.listed)]
    return [Finding(Verdict.OK, "the key is taken" if settings.api_key else "none is set, and none is asked for")]


def model(context: Context) -> Sequence[Finding]:
    """Whether the server serves the model."""
    settings, server = tools(context)
    served = list(server.endpoint.served)
    data = {"served": served}
    if settings.model in served:
        return [Finding(Verdict.OK, f"{settings.model!r} is served", data=data)]
    if served:
        listed = _listed([repr(name) for name in served[:10]])
        text = f"{settings.model!r} ({settings.source('model')}) is not served; the server has {listed}"
        do = f"set HYMEMORY_MODEL={served[0]}, or start the server with --served-model-name {settings.model}"
        return [Finding(Verdict.BAD, text, do, data)]
    answer = server.chat("Say hello.", None, max_tokens=1)  # some servers list nothing
    if isinstance(answer, Failure):
        return [failed(context, answer)]
    return [Finding(Verdict.OK, f"the server answers as {settings.model!r} (it lists no models)", data=data)]


# -- context ---------------------------------------------------------------------------------------


def context_length(context: Context) -> Sequence[Finding]:
    """Whether the longest prompt of the installed hosts and its reply fit the model's context."""
    settings, server = tools(context)
    prompts = {call: messages for host in context.hosts for call, messages in host.prompts.items()}
    if not prompts:
        length = server.endpoint.context
        return [Finding(Verdict.OK, f"{_tokens(length)}; no host is here to compare with", data={"context": length})]
    call, messages = max(prompts.items(), key=lambda item: estimated_prompt(item[1]))
    counted = server.tokenize_prompt(messages)
    count = len(counted["tokens"]) if counted else estimated_prompt(messages)
    return [judge_context(server.endpoint.context, call, count, settings.max_tokens, counted=counted is not None)]


def judge_context(length: int | None, call: str, prompt: int, budget: int, *, counted: bool) -> Finding:
    """Say whether prompt and reply fit."""
    takes = f"{call} with a short conversation takes {'' if counted else 'about '}{prompt:,} tokens"
    wanted = prompt + budget
    data: dict[str, Any] = {"context": length, "prompt": prompt, "call": call, "counted": counted, "budget": budget}
    if length is None:
        do = f"see that the server's context holds {wanted:,} tokens and the conversation"
        return Finding(Verdict.UNKNOWN, f"the server does not say how long its context is; {takes}", do, data)
    do = f"start the server with --max-model-len {_round(wanted + wanted // 4)} or more"
    if length < prompt + SMALLEST_REPLY:
        return Finding(Verdict.BAD, f"{_tokens(length)} are too few: {takes}, and the reply comes on top", do, data)
    if length < wanted:
        text = f"{_tokens(length)} are few: {takes}, which leaves {length - prompt:,} for conversation and reply"
        return Finding(Verdict.WARNING, text, f"{do} (HYMEMORY_MAX_TOKENS is {budget:,})", data)
    left = length - wanted
    return Finding(Verdict.OK, f"{_tokens(length)}; {takes}, the reply up to {budget:,}: {left:,} are left", data=data)


def _round(tokens: int) -> int:
    return -(-tokens // 4096) * 4096


def _tokens(length: int | None) -> str:
    return "context of unknown length" if length is None else f"{length:,} tokens"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)

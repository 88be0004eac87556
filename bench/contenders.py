"""Who writes: the bare openai client, Mem0's stock provider and ours; from threads, coroutines, and in Mem0's way.

All send Mem0's own additive request (34 kB, most of it the system prompt):

- ``bare``: the openai client with the very body that ours sends, and ``json.loads`` on its reply; the least that any
  provider has to do.
- ``stock``: Mem0's ``vllm`` provider, as Mem0 calls it: no schema, no validation, no second attempt.
- ``ours``: the provider ``hymemory``, which also recognises, constrains, reads losslessly, validates, armours, tells.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from mem0.utils.factory import LlmFactory
from openai import AsyncOpenAI, OpenAI
from rounds import Contender

import hymemory_adapters
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.wire import chat_body, extra_body
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.mem0.prompts import typical

CALL = "mem0.additive"
FORMAT = {"type": "json_object"}
MANY = 32


def messages() -> list[dict[str, Any]]:
    """A typical additive request, made by the installed Mem0."""
    prompts = typical()
    if CALL not in prompts:
        raise SystemExit("the benchmark needs Mem0 2.x: older ones have no additive call")
    return [dict(message) for message in prompts[CALL]]


def ours(url: str) -> Any:
    """Our provider, as Mem0 builds it."""
    hymemory_adapters.register("mem0")
    return LlmFactory.create("hymemory", {"base_url": url})


def stock(url: str) -> Any:
    """Mem0's own provider for vLLM."""
    return LlmFactory.create("vllm", {"vllm_base_url": url, "model": "hy-memory", "api_key": "EMPTY"})


def request(llm: Any, asked: Sequence[dict[str, Any]]) -> Request:
    """What our provider makes of Mem0's call."""
    sampling = {"temperature": llm.config.temperature, "top_p": llm.config.top_p}
    return Request(messages=asked, response_format=FORMAT, sampling=sampling, max_tokens=llm.config.max_tokens)


def arguments(writer: Writer, asked: Request) -> dict[str, Any]:
    """The arguments for the openai client that put the same body on the wire as ours."""
    recognised = writer.recognise(asked)
    assert recognised is not None
    schema, settings = recognised[1].schema, writer.settings
    told = chat_body(
        asked, asked.messages, model=settings.model, schema=schema, form="json_schema", max_tokens=settings.max_tokens
    )
    return {**told, "extra_body": extra_body(asked, settings.no_think)}


# -- ways to write ---------------------------------------------------------------------------------


def timed(write: Callable[[], Any], times: int) -> list[float]:
    """Write so often, and say how many milliseconds each time took."""
    taken = []
    for _ in range(times):
        before = time.perf_counter()
        write()
        taken.append((time.perf_counter() - before) * 1000)
    return taken


async def _timed_async(write: Callable[[], Awaitable[Any]], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        before = time.perf_counter()
        await write()
        taken.append((time.perf_counter() - before) * 1000)
    return taken


class Ways:
    """Threads and an event loop that live as long as the benchmark, as an app's do."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(MANY)
        self.loop = asyncio.new_event_loop()
        self.clients: list[AsyncOpenAI] = []

    def threads(self, write: Callable[[], Any], writers: int, times: int) -> list[float]:
        """From threads; one writer writes from the main thread."""
        if writers == 1:
            return timed(write, times)
        return [t for part in self.pool.map(lambda _: timed(write, times), range(writers)) for t in part]

    def coroutines(self, write: Callable[[], Awaitable[Any]], writers: int, times: int) -> list[float]:
        """From coroutines of one loop."""

        async def everyone() -> list[list[float]]:
            return await asyncio.gather(*(_timed_async(write, times) for _ in range(writers)))

        return [t for part in self.loop.run_until_complete(everyone()) for t in part]

    def to_thread(self, write: Callable[[], Any], writers: int, times: int) -> list[float]:
        """As Mem0's ``AsyncMemory`` calls its LLM: in asyncio's own few threads."""
        return self.coroutines(partial(asyncio.to_thread, write), writers, times)

    def close_clients(self) -> None:
        """Close idle connections.

        Never leave that to the garbage collector: it closes the sockets first and lets the client unregister
        them later, by numbers that belong to somebody else's sockets by then, who wait in vain for an answer.
        """
        for client in self.clients:
            self.loop.run_until_complete(client.close())
        self.clients.clear()

    def close(self) -> None:
        """End the threads and the loop."""
        self.close_clients()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.pool.shutdown()


def contenders(url: str, ways: Ways) -> dict[str, list[Contender]]:
    """Everyone, at one base URL, by the way in which they write."""
    asked = messages()
    llm, vllm = ours(url), stock(url)
    body = arguments(llm.writer, request(llm, asked))
    client, async_client = OpenAI(base_url=url, api_key="EMPTY"), AsyncOpenAI(base_url=url, api_key="EMPTY")
    ways.clients.append(async_client)

    def bare() -> Any:
        return json.loads(client.chat.completions.create(**body).choices[0].message.content or "")

    async def bare_async() -> Any:
        completion = await async_client.chat.completions.create(**body)
        return json.loads(completion.choices[0].message.content or "")

    def stock_write() -> Any:
        return vllm.generate_response(messages=asked, response_format=FORMAT)

    def our_write() -> Any:
        return llm.generate_response(messages=asked, response_format=FORMAT)

    async def our_awrite() -> Any:
        return await llm.writer.awrite(request(llm, asked))

    return {
        "threads": [
            Contender("bare", "", partial(ways.threads, bare)),
            Contender("stock", "bare", partial(ways.threads, stock_write)),
            Contender("ours", "bare", partial(ways.threads, our_write)),
        ],
        "coroutines": [
            Contender("bare, async", "", partial(ways.coroutines, bare_async)),
            Contender("ours, async", "bare, async", partial(ways.coroutines, our_awrite)),
        ],
        "to_thread": [
            Contender("bare, to_thread", "", partial(ways.to_thread, bare)),
            Contender("stock, to_thread", "bare, to_thread", partial(ways.to_thread, stock_write)),
            Contender("ours, to_thread", "bare, to_thread", partial(ways.to_thread, our_write)),
        ],
    }

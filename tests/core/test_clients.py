"""Connections: kept from one request to the next, and closed with the event loop that they belong to."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hymemory_adapters.core.endpoint import endpoint_of
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.writer import Writer
from tests.support.calls import GOOD, ask, soon, writer_at
from tests.support.scripted import ScriptedEndpoint

Loops = list["weakref.ref[asyncio.AbstractEventLoop]"]

pytestmark = pytest.mark.filterwarnings("error")  # a socket, loop or coroutine that nobody closed


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(GOOD) as endpoint:
        yield endpoint


async def write(writer: Writer, times: int = 2) -> weakref.ref[asyncio.AbstractEventLoop]:
    for _ in range(times):
        await writer.awrite(ask())
    return weakref.ref(asyncio.get_running_loop())


def test_writes_one_after_another_share_a_connection(endpoint: ScriptedEndpoint) -> None:
    writer = writer_at(endpoint)
    asyncio.run(write(writer, 5))
    in_the_loop = endpoint.connections
    assert in_the_loop < 5  # one, on a machine with time for it: an idle one is closed after five seconds
    for _ in range(5):
        writer.write(ask())
    assert in_the_loop < endpoint.connections < in_the_loop + 5, "threads have their own"


def test_coroutines_at_once_share_one_client(endpoint: ScriptedEndpoint) -> None:
    async def main() -> None:
        writer = writer_at(endpoint)
        for _ in range(3):
            await asyncio.gather(*(writer.awrite(ask()) for _ in range(8)))

    asyncio.run(main())
    assert len(endpoint.chats) == 24
    assert endpoint.connections < 24


def test_a_loop_takes_its_connections_with_it(endpoint: ScriptedEndpoint) -> None:
    """Kept ones would hold the loop: one more open file for every asyncio.run."""
    writer = writer_at(endpoint)
    loops = [asyncio.run(write(writer)) for _ in range(5)]
    assert soon(lambda: endpoint.connections_open == 0)
    gc.collect()
    assert [loop() for loop in loops] == [None] * 5


def test_a_loop_that_is_closed_by_hand_lasts_until_the_next(endpoint: ScriptedEndpoint) -> None:
    writer = writer_at(endpoint)

    def by_hand() -> weakref.ref[asyncio.AbstractEventLoop]:
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(write(writer))
        finally:
            loop.close()  # and no shutdown_asyncgens before

    def five_and_a_good_one() -> Loops:
        loops = [by_hand() for _ in range(5)]
        asyncio.run(write(writer))
        gc.collect()
        return loops

    with pytest.warns(ResourceWarning, match="unclosed"):  # as for any connection that a closed loop has left behind
        loops = five_and_a_good_one()
    assert [loop() for loop in loops] == [None] * 5
    assert soon(lambda: endpoint.connections_open == 0)


def test_loops_in_threads_do_not_get_in_each_others_way(endpoint: ScriptedEndpoint) -> None:
    writer = writer_at(endpoint)
    with ThreadPoolExecutor(4) as threads:
        loops = list(threads.map(lambda _: asyncio.run(write(writer, 3)), range(16)))
    assert len(endpoint.chats) == 48
    assert endpoint.connections < 48
    assert soon(lambda: endpoint.connections_open == 0)
    gc.collect()
    assert {loop() for loop in loops} == {None}


def test_a_stream_that_is_left_open_ends_with_its_loop(endpoint: ScriptedEndpoint) -> None:
    writer = writer_at(endpoint, concurrency=1, deadline=5)

    async def main() -> None:
        chunks = writer.astream(Request([{"role": "user", "content": "hello"}]))
        await anext(chunks)
        left.append(chunks)

    left: list[object] = []
    asyncio.run(main())
    assert soon(lambda: endpoint.connections_open == 0)
    writer.write(ask())  # its place is free


def test_a_client_serves_a_loop_that_goes_on_after_its_generators(endpoint: ScriptedEndpoint) -> None:
    """Some servers close generators when they reload, and use the loop on."""
    writer = writer_at(endpoint)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(write(writer))
    loop.run_until_complete(loop.shutdown_asyncgens())
    assert soon(lambda: endpoint.connections_open == 0)
    with pytest.warns(ResourceWarning, match="shutdown_asyncgens"):
        loop.run_until_complete(write(writer))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert len(endpoint.chats) == 4


def test_equal_settings_share_their_connections(endpoint: ScriptedEndpoint) -> None:
    one, other = writer_at(endpoint), writer_at(endpoint)
    assert endpoint_of(one.settings) is endpoint_of(other.settings)
    for _ in range(3):
        one.write(ask())
        other.write(ask())
    assert endpoint.connections < 6

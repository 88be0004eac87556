"""Threads, coroutines, event loops, forks, copies, and the app's giving up."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hymemory_adapters.core import endpoint as endpoint_module
from hymemory_adapters.core import events, patience
from hymemory_adapters.core.writer import Writer
from tests.support.calls import GOOD, Write, ask, both_ways, in_a_loop, in_a_thread, writer_at
from tests.support.scripted import Fail, ScriptedEndpoint


def echo(body: dict[str, Any]) -> str:
    """Answers with what was asked, so that a reply in the wrong hands shows."""
    return json.dumps({"facts": [body["messages"][1]["content"]]})


def in_threads(jobs: list[Callable[[], object]]) -> None:
    failed: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []


async def many(writer: Writer, texts: list[str]) -> list[str]:
    written = await asyncio.gather(*(writer.awrite(ask(text=text)) for text in texts))
    return [json.loads(one.value)["facts"][0] for one in written]


def test_sixteen_coroutines_at_once(heard: list[events.WriteEvent]) -> None:
    texts = [f"text {i}" for i in range(16)]
    with ScriptedEndpoint(echo) as endpoint:
        assert asyncio.run(many(writer_at(endpoint), texts)) == texts
    assert [event.outcome for event in heard] == ["ok"] * 16


def test_sixteen_threads_at_once(heard: list[events.WriteEvent]) -> None:
    texts, came = [f"text {i}" for i in range(16)], {}
    with ScriptedEndpoint(echo) as endpoint:
        writer = writer_at(endpoint)

        def job(text: str) -> None:
            came[text] = json.loads(writer.write(ask(text=text)).value)["facts"][0]

        in_threads([lambda text=text: job(text) for text in texts])
    assert came == {text: text for text in texts}
    assert [event.outcome for event in heard] == ["ok"] * 16


def test_one_limit_holds_for_threads_and_loops_together() -> None:
    together = threading.Barrier(4)

    def answer(_: dict[str, Any]) -> str:
        together.wait(30)  # goes on only when four are there at once
        return GOOD

    with ScriptedEndpoint(answer) as endpoint:
        writer = writer_at(endpoint, concurrency=4)
        jobs: list[Callable[[], object]] = [lambda i=i: writer.write(ask(text=f"thread {i}")) for i in range(16)]
        jobs += [lambda loop=loop: asyncio.run(many(writer, [f"{loop} {i}" for i in range(8)])) for loop in "ab"]
        in_threads(jobs)
        assert (len(endpoint.chats), endpoint.most_at_once) == (32, 4)
    assert endpoint_module._gate(4)._free == 4


def test_a_pause_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one place, a write that waits for its server lets another one through."""
    pausing: list[float] = []
    monkeypatch.setattr(patience.Patience, "pause", lambda *_: pausing.append(60.0) or 60.0)

    async def main() -> None:
        waiting = asyncio.create_task(writer.awrite(ask(text="first")))
        await _until(lambda: pausing)
        assert (await writer.awrite(ask(text="other"))).event.outcome == "ok"
        assert not waiting.done()
        assert await _cancelled(waiting)

    with ScriptedEndpoint(Fail(503), GOOD) as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        asyncio.run(main())


# -- copies and forks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda writer: pickle.loads(pickle.dumps(writer))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("used", [True, False], ids=["used", "new"])
@both_ways
def test_a_copy_writes(write: Write, copied: Callable[[Writer], Writer], used: bool) -> None:
    with ScriptedEndpoint(echo) as endpoint:
        writer = writer_at(endpoint, api_key="secret", headers={"X-Ours": "1"})
        if used:
            write(writer, ask(text="before"))
        twin = copied(writer)
        for one in (twin, writer):
            assert json.loads(write(one, ask(text="after")).value) == {"facts": ["after"]}
        assert {chat.headers["authorization"] for chat in endpoint.chats} == {"Bearer secret"}
        assert twin.settings == writer.settings


def in_a_child(job: Callable[[], object]) -> bool:
    """Whether the job ends well in a forked child within ten seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            job()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_parent_and_child_write_after_a_fork() -> None:
    with ScriptedEndpoint(echo) as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        for write in (in_a_thread, in_a_loop):
            write(writer, ask(text="parent"))

        def job() -> None:
            for write in (in_a_thread, in_a_loop):
                assert json.loads(write(writer, ask(text="child")).value) == {"facts": ["child"]}
            assert writer.endpoint.pid == os.getpid()

        endpoint_module._gate(1).enter(1)  # a place that is taken in the parent is free in the child
        assert in_a_child(job)
        endpoint_module._gate(1).leave()
        for write in (in_a_thread, in_a_loop):
            assert json.loads(write(writer, ask(text="parent again")).value) == {"facts": ["parent again"]}
        assert len(endpoint.chats) == 6


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_lock_that_is_held_while_forking_blocks_no_child() -> None:
    with ScriptedEndpoint(Fail(400, "response_format is not supported"), GOOD) as endpoint:
        writer = writer_at(endpoint)
        with events._said_lock, endpoint_module._lock:
            # A step down is said once, which takes the lock.
            assert in_a_child(lambda: writer.write(ask()))
        assert len(endpoint.chats) == 2


# -- giving up --------------------------------------------------------------------------------------


async def _until(condition: Callable[[], object]) -> None:
    async def waits() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(waits(), 30)


async def _cancelled(task: asyncio.Task[Any]) -> bool:
    task.cancel()
    await asyncio.wait([task], timeout=5)
    return task.cancelled()


def test_a_coroutine_is_cancelled_during_its_request(heard: list[events.WriteEvent]) -> None:
    over = threading.Event()

    def answer(_: dict[str, Any]) -> str:
        over.wait(10)
        return GOOD

    async def main() -> None:
        task = asyncio.create_task(writer.awrite(ask()))
        await _until(lambda: endpoint.at_once)
        assert await _cancelled(task)

    with ScriptedEndpoint(answer) as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        asyncio.run(main())
        over.set()
        assert [(event.call, event.outcome, event.attempts) for event in heard] == [("demo.facts", "cancelled", ())]
        assert endpoint_module._gate(1)._free == 1
        assert in_a_loop(writer, ask()).event.repeat is False, "given up is not lost"


def test_a_coroutine_is_cancelled_during_a_pause(
    monkeypatch: pytest.MonkeyPatch, heard: list[events.WriteEvent]
) -> None:
    pausing: list[float] = []
    monkeypatch.setattr(patience.Patience, "pause", lambda *_: pausing.append(5.0) or 5.0)

    async def main() -> None:
        task = asyncio.create_task(writer.awrite(ask()))
        await _until(lambda: pausing)
        assert await _cancelled(task)

    with ScriptedEndpoint("prose", Fail(503)) as endpoint:
        writer = writer_at(endpoint)
        asyncio.run(main())
    assert [(event.outcome, len(event.attempts)) for event in heard] == [("cancelled", 1)]


def test_a_coroutine_is_cancelled_while_it_waits_for_a_place(heard: list[events.WriteEvent]) -> None:
    async def main() -> None:
        gate = endpoint_module._gate(1)
        gate.enter(1)
        task = asyncio.create_task(writer.awrite(ask()))
        await _until(lambda: gate._waiting)
        assert await _cancelled(task)
        gate.leave()
        assert gate._free == 1

    with ScriptedEndpoint(GOOD) as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        asyncio.run(main())
        assert endpoint.requests == []
    assert [event.outcome for event in heard] == ["cancelled"]


def test_a_request_that_passes_through_is_given_up_without_an_event(heard: list[events.WriteEvent]) -> None:
    async def main() -> None:
        endpoint_module._gate(1).enter(1)
        task = asyncio.create_task(writer.awrite(ask("chat")))
        await _until(lambda: endpoint_module._gate(1)._waiting)
        assert await _cancelled(task)

    with ScriptedEndpoint("hi") as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        asyncio.run(main())
    assert heard == []


@pytest.fixture
def _ctrl_c_works() -> Iterator[None]:
    """A process that a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@both_ways
@pytest.mark.usefixtures("_ctrl_c_works")
def test_ctrl_c_passes(write: Write, heard: list[events.WriteEvent]) -> None:
    main = threading.main_thread().ident
    over = threading.Event()

    def press(_: dict[str, Any]) -> str:
        signal.pthread_kill(main, signal.SIGINT)
        over.wait(10)
        return GOOD

    with ScriptedEndpoint(press) as endpoint:
        writer = writer_at(endpoint, concurrency=1)
        with pytest.raises(KeyboardInterrupt):
            write(writer, ask())
        over.set()
    assert [event.outcome for event in heard] == ["cancelled"]
    assert endpoint_module._gate(1)._free == 1

"""The limit on requests at once: in turn, and no place is ever lost."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from concurrent.futures import Future

import pytest

from hymemory_adapters.core.gate import Gate
from tests.support.calls import soon


def served(places: list[Future[None]]) -> list[bool]:
    return [place.done() and not place.cancelled() for place in places]


def test_first_come_first_served() -> None:
    gate = Gate(2)
    places = [gate._queue() for _ in range(4)]
    assert served(places) == [True, True, False, False]
    gate.leave()
    assert served(places) == [True, True, True, False]
    gate.leave()
    late = gate._queue()
    assert (served(places), late.done()) == ([True] * 4, False)
    gate.leave()
    assert late.done()


def test_who_gave_up_is_passed_over() -> None:
    gate = Gate(1)
    _, waiting, behind = (gate._queue() for _ in range(3))
    gate._give_up(waiting)
    gate.leave()
    assert (waiting.cancelled(), served([behind])) == (True, [True])


@pytest.mark.parametrize("others", [0, 1])
def test_who_gives_up_while_being_served_passes_the_place_on(others: int) -> None:
    gate = Gate(1)
    gate.enter(1)
    waiting, *behind = [gate._queue() for _ in range(1 + others)]
    gate.leave()  # the place is there, and whoever waits has not noticed yet
    gate._give_up(waiting)
    assert served(behind) == [True] * others
    if others:
        gate.leave()
    assert gate._free == 1


def test_a_thread_waits_no_longer_than_it_says() -> None:
    gate = Gate(1)
    gate.enter(1)
    with pytest.raises(TimeoutError):
        gate.enter(0.01)
    gate.leave()
    gate.enter(0)
    gate.leave()
    assert gate._free == 1


def test_a_coroutine_waits_no_longer_than_it_says() -> None:
    async def main() -> None:
        gate = Gate(1)
        await gate.aenter(1)
        with pytest.raises(TimeoutError):
            await gate.aenter(0.01)
        gate.leave()
        await gate.aenter(0)
        gate.leave()
        assert gate._free == 1

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal wakes a thread here")
def test_an_interrupted_thread_gives_its_turn_to_the_next() -> None:
    gate = Gate(1)
    gate.enter(1)

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    def when_it_waits() -> None:
        assert soon(lambda: bool(gate._waiting))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        thread = threading.Thread(target=when_it_waits)
        thread.start()
        with pytest.raises(Interrupted):
            gate.enter(20)
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    behind = gate._queue()
    gate.leave()
    assert served([behind]) == [True]


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_around_the_moment_of_being_served(turns: int) -> None:
    """Before Python 3.12 ``asyncio.wait_for`` drops a cancellation that comes together with the result."""

    async def main() -> None:
        gate = Gate(1)
        gate.enter(1)
        entered: list[str] = []

        async def waits() -> None:
            await gate.aenter(5)
            entered.append("in")
            try:
                await asyncio.sleep(5)
            finally:
                gate.leave()

        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.leave()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=1)
        assert done, "the cancellation was swallowed"
        assert task.cancelled()
        assert gate._free == 1

    asyncio.run(main())


def test_a_thread_hands_its_place_to_a_coroutine_of_another_thread() -> None:
    gate, waiting, order = Gate(1), threading.Event(), []
    gate.enter(1)

    async def other() -> None:
        entering = asyncio.create_task(gate.aenter(5))
        await asyncio.sleep(0)
        waiting.set()
        await entering
        order.append("other")
        gate.leave()

    thread = threading.Thread(target=asyncio.run, args=(other(),))
    thread.start()
    assert waiting.wait(5)
    order.append("first")
    gate.leave()
    thread.join(5)
    assert (order, gate._free) == (["first", "other"], 1)


@pytest.mark.parametrize("seed", range(5))
def test_no_place_is_lost_whatever_happens(seed: int) -> None:
    chance = random.Random(seed)
    gate = Gate(3)
    inside = most = 0

    async def use() -> None:
        nonlocal inside, most
        await gate.aenter(chance.choice([0, 0.001, 5]))
        inside += 1
        most = max(most, inside)
        try:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        finally:
            inside -= 1
            gate.leave()

    async def main() -> None:
        tasks = [asyncio.create_task(use()) for _ in range(60)]
        for _ in range(100):
            chance.choice(tasks).cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        # One served and one cancelled in the same turn settle in the next.
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert (gate._free, inside, most <= 3) == (3, 0, True)
    assert not [place for place in gate._waiting if not place.cancelled()]

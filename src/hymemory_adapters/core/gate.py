"""A limit on requests at once that threads and event loops share."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FuturesTimeoutError


class Gate:
    """A first-come-first-served semaphore, waited for by threads and by coroutines of any loop.

    ``threading.Semaphore`` would block an event loop, and ``asyncio.Semaphore`` belongs to one loop.
    """

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._free = places
        self._waiting: deque[Future[None]] = deque()

    def _queue(self) -> Future[None]:
        place: Future[None] = Future()
        with self._lock:
            if self._free > 0:
                self._free -= 1
                place.set_result(None)
            else:
                self._waiting.append(place)
        return place

    def enter(self, timeout: float) -> None:
        """Wait for a place; ``TimeoutError`` after ``timeout`` seconds."""
        place = self._queue()
        try:
            place.result(timeout)
        except FuturesTimeoutError:  # before Python 3.11 a class of its own
            self._give_up(place)
            raise TimeoutError from None
        except BaseException:
            self._give_up(place)
            raise

    async def aenter(self, timeout: float) -> None:
        """Wait for a place without blocking the loop; ``TimeoutError`` after ``timeout`` seconds."""
        place = self._queue()
        if place.done():
            return
        try:
            # Not wait_for: before Python 3.12 it drops a cancellation that comes together with the place.
            served, _ = await asyncio.wait([asyncio.wrap_future(place)], timeout=timeout)
        except BaseException:
            self._give_up(place)
            raise
        if not served:
            self._give_up(place)
            raise TimeoutError

    def leave(self) -> None:
        """Give the place to whoever waits longest."""
        with self._lock:
            while self._waiting:
                place = self._waiting.popleft()
                if place.set_running_or_notify_cancel():
                    place.set_result(None)
                    return
            self._free += 1

    def _give_up(self, place: Future[None]) -> None:
        # The place may have come in the very moment of giving up: pass it on.
        if not place.cancel():
            self.leave()

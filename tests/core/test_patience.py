"""How long transport failures are retried, by a clock that the test sets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hymemory_adapters.core import patience
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.patience import Patience

BUSY, FAULT, SILENT = Failure("transport", "", 503), Failure("transport", "", 500), Failure("read_timeout", "")


class Clock:
    """Time passes when the test says so, and chance takes the longest pause, or another share of the way to it."""

    now = 0.0
    share = 1.0

    def monotonic(self) -> float:
        return self.now

    def uniform(self, low: float, high: float) -> float:
        return low + self.share * (high - low)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(patience, "time", clock)
    monkeypatch.setattr(patience, "random", SimpleNamespace(uniform=clock.uniform))
    return clock


@pytest.mark.parametrize(("share", "pause"), [(1.0, 0.1), (0.0, 0.05)])
def test_the_first_pause_is_short_and_half_of_it_is_chance(clock: Clock, share: float, pause: float) -> None:
    clock.share = share
    assert Patience(10).pause(BUSY, 60) == pause


def test_each_pause_is_twice_the_last_up_to_five_seconds(clock: Clock) -> None:
    patient = Patience(300)
    assert [patient.pause(BUSY, 300) for _ in range(8)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert patient.take_retries() == 8
    assert [patient.take_retries(), patient.pause(BUSY, 300)] == [0, 0.1], "another attempt begins anew"


def test_after_a_thousand_pauses_there_is_a_next(clock: Clock) -> None:
    patient = Patience(10_000)
    assert {patient.pause(BUSY, 10_000) for _ in range(1100)} >= {5.0}


@pytest.mark.parametrize(
    ("seconds", "remaining", "waits"),
    [
        pytest.param(3, 60, True, id="just-within-the-patience"),
        pytest.param(2.9, 60, False, id="beyond-it"),
        pytest.param(60, 3, True, id="just-within-the-deadline"),
        pytest.param(60, 2.9, False, id="beyond-it-too"),
    ],
)
def test_a_pause_ends_within_patience_and_deadline(clock: Clock, seconds: float, remaining: float, waits: bool) -> None:
    clock.now = 1000.0
    asked = Failure("transport", "", 429, retry_after=3.0)
    assert Patience(seconds).pause(asked, remaining) == (3.0 if waits else None)


def test_the_seconds_count_from_the_first_failure_until_the_server_answers(clock: Clock) -> None:
    patient = Patience(10)
    assert patient.pause(BUSY, 60) is not None
    clock.now = 9.0
    assert patient.pause(BUSY, 60) is not None
    clock.now = 10.0
    assert patient.pause(BUSY, 60) is None
    patient.answered()
    assert patient.pause(BUSY, 60) is not None
    clock.now = 20.0
    assert patient.pause(BUSY, 60) is None


def test_who_gives_up_has_sent_nothing_again(clock: Clock) -> None:
    patient = Patience(0)
    assert patient.pause(BUSY, 60) is None
    assert patient.take_retries() == 0


def test_a_read_timeout_is_sent_again_at_once_and_once(clock: Clock) -> None:
    patient = Patience(10)
    pauses = [patient.pause(failure, 60) for failure in (BUSY, SILENT, BUSY, SILENT, SILENT)]
    assert pauses == [0.1, 0.0, 0.4, None, None]
    assert patient.take_retries() == 3


def test_only_http_500_may_be_the_schemas_fault(clock: Clock) -> None:
    patient = Patience(10)
    counted = []
    for failure in (BUSY, FAULT, SILENT, FAULT):
        patient.pause(failure, 60)
        counted.append(patient.server_errors)
    assert counted == [0, 1, 1, 2]

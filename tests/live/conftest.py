"""What the live tests start from: a server, or a reason to skip; and a tap on the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.server import LIVE
from tests.live.tap import Tap
from tests.support.coroutines import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def tap() -> Iterator[Tap]:
    with Tap(LIVE.base_url or "") as opened:
        yield opened

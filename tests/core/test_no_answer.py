"""What it means when no answer comes: the errors of the network and of the HTTP library."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from hymemory_adapters.core.failure import classify
from tests.support.calls import SAID


class Group(Exception):
    """Like ``ExceptionGroup``, which Python 3.10 has not."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(f"multiple connection attempts failed ({len(errors)} sub-exceptions)")
        self.exceptions = errors


def named(name: str) -> Exception:
    """An exception of the HTTP library by its name: which library that is differs from version to version."""
    return type(name, (Exception,), {})("timed out")


def chain(*errors: BaseException, kind: Any = openai.APIConnectionError) -> openai.APIConnectionError:
    """An error of the openai package, and below it the causes, as its HTTP library chains them."""
    first: Any = kind.__new__(kind)
    Exception.__init__(first, "Connection error.")
    error: BaseException = first
    for cause in errors:
        error.__cause__ = cause
        error = cause
    return first


REFUSED = ConnectionRefusedError(111, "Connection refused")


DROPPED = "Server disconnected without sending a response."
NO_ANSWERS: dict[str, tuple[openai.OpenAIError, str, str]] = {
    "refused": (chain(OSError("x"), REFUSED), "refused", "connection refused"),
    "refused in words": (chain(OSError("[Errno 111] Connection refused")), "refused", "connection refused"),
    # localhost has two addresses, and anyio tries both
    "refused twice": (
        chain(OSError("All connection attempts failed"), Group(REFUSED, REFUSED)),
        "refused",
        "connection refused",
    ),
    "dropped": (chain(OSError(DROPPED)), "transport", DROPPED),
    "no such host": (
        chain(OSError("[Errno -2] Name or service not known")),
        "transport",
        "[Errno -2] Name or service not known",
    ),
    "the first cause is mute": (chain(OSError(), OSError("reset by peer")), "transport", "reset by peer"),
    "no cause": (chain(), "transport", "Connection error."),
    "no connection in time": (
        chain(named("ConnectTimeout"), kind=openai.APITimeoutError),
        "transport",
        "no connection within the timeout",
    ),
    "no free connection in time": (
        chain(named("PoolTimeout"), kind=openai.APITimeoutError),
        "transport",
        "no connection within the timeout",
    ),
    "no answer in time": (
        chain(named("ReadTimeout"), kind=openai.APITimeoutError),
        "read_timeout",
        "no answer within the timeout",
    ),
    "any other": (openai.OpenAIError("odd"), "request", "the answer is not OpenAI's chat completion (OpenAIError)"),
}


@pytest.mark.parametrize(("error", "kind", "words"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_no_answer_means(error: openai.OpenAIError, kind: str, words: str) -> None:
    failure = classify(error, constrained=True, messages=())
    assert (failure.kind, failure.status, failure.retry_after) == (kind, None, None)
    assert failure.detail == words


def test_a_network_error_that_quotes_the_request_is_left_out() -> None:
    failure = classify(chain(OSError(f"cannot send: {SAID}")), constrained=True, messages=[{"content": SAID}])
    assert failure.kind == "transport"
    assert "quote the request and are left out" in failure.detail
    assert SAID[:24] not in failure.detail


def test_a_header_that_http_refuses_is_not_quoted() -> None:
    failure = classify(chain(OSError("Illegal header value b'Bearer s3cret\\n'")), constrained=True, messages=())
    assert failure.kind == "request"
    assert failure.detail == "a header of the writer holds characters that HTTP does not allow"


def test_what_was_sent_in_headers_is_hidden() -> None:
    failure = classify(chain(OSError("no: k-1, k-2")), constrained=True, messages=(), secrets=("k-1", "k-2"))
    assert failure.detail == "no: (hidden), (hidden)"

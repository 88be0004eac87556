"""Text that others wrote, made fit for a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # an escape sequence could rewrite what stands above
_HALF = re.compile("[\ud800-\udfff]")  # half a surrogate pair cannot be printed


def printable(text: str) -> str:
    """Replace what a terminal would act on, or could not print."""
    return _HALF.sub("\ufffd", _CONTROL.sub("\ufffd", text.replace("\r\n", "\n")))

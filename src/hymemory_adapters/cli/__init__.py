"""The console command ``hymemory`` (extra ``cli``)."""

from __future__ import annotations

import contextlib
import sys


def main() -> None:
    """Run the command; without the extra, say how to install it."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit('hymemory needs its extra: pip install "hymemory-adapters[cli]"')
    from hymemory_adapters.cli.app import app

    for stream in (sys.stdout, sys.stderr):  # conversations are in all languages, some terminals in one
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app()

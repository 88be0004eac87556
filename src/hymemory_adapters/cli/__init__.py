"""The console command ``hymemory`` (extra ``cli``)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without the extra, say how to install it."""
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('hymemory needs its extra: pip install "hymemory-adapters[cli]"')
    from hymemory_adapters.cli.app import app

    app()

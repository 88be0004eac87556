"""The commands of ``hymemory``: one file each, put together here."""

from __future__ import annotations

from typing import Annotated

import typer

from hymemory_adapters import __version__
from hymemory_adapters.cli.calls import calls
from hymemory_adapters.cli.doctor import doctor
from hymemory_adapters.cli.lost import lost

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they would hold keys and conversations
    help="Hy-Memory as the memory LLM of agent memory frameworks.",
)
app.command()(doctor)
app.command()(calls)
app.command()(lost)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hymemory-adapters {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Hy-Memory as the memory LLM of agent memory frameworks."""

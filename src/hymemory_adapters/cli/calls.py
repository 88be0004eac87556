"""``hymemory calls``: which write calls are recognised, and what happens when one is lost."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hymemory_adapters.registry import HOSTS, Host


def calls(
    host: Annotated[str, typer.Argument(help="One host only.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the schemas on the wire.")] = False,
) -> None:
    """List the write calls of the installed hosts: what is asked, and what the host gets when one is lost."""
    if host and host not in HOSTS:
        raise typer.BadParameter(f"there is no host {host!r}; known are: {', '.join(HOSTS)}")
    chosen = [each for each in HOSTS.values() if host in ("", each.name)]
    if as_json:
        typer.echo(json.dumps([row for each in chosen for row in _rows(each)], indent=2))
        return
    console = Console()
    for each in chosen:
        console.print(Text(_about(each), "bold"))
        table = Table(box=None, pad_edge=False)
        for heading in ("call", "when lost", "what it does"):
            table.add_column(heading, overflow="fold")
        for row in _rows(each):
            table.add_row(*map(Text, (row["call"], row["lost"], row["summary"])))
        console.print(table)


def _about(host: Host) -> str:
    installed = host.installed_version() or "not"
    return (
        f"{host.name}: {host.distribution}, {installed} installed; "
        f"supported {host.supported}; tested {', '.join(host.tested)}"
    )


def _rows(host: Host) -> list[dict[str, Any]]:
    about = {
        "host": host.name,
        "installed": host.installed_version(),
        "supported": host.supported,
        "tested": list(host.tested),
    }
    if about["installed"] is None:
        return [{"call": f"{host.name}.*", **about, "lost": "", "summary": f"pip install {host.distribution}"}]
    try:
        calls = host.write_calls()
    except Exception as error:  # another version than the supported ones, or a broken installation
        why = f"cannot be read: {type(error).__name__}: {error}"
        return [{"call": f"{host.name}.*", **about, "lost": "", "summary": why}]
    return [
        {
            "call": call.name,
            **about,
            "lost": call.on_lost.value,
            "summary": call.summary,
            "schema": call.typical.wire if call.typical else None,
        }
        for call in calls
    ]

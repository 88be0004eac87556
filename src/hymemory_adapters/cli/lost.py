"""``hymemory lost``: what a journal of lost writes holds."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from hymemory_adapters.cli.text import printable

_SHOWN = 2000


def lost(
    file: Annotated[Path, typer.Argument(help="The file that HYMEMORY_JOURNAL names.", exists=True, dir_okay=False)],
    full: Annotated[bool, typer.Option("--full", help="Show messages whole, however long.")] = False,
) -> None:
    """Show each lost write of a journal: when, whose, why, and the conversation that was not remembered.

    Exit code 1 if a line of the file cannot be read.
    """
    console = Console()
    shown = unreadable = 0
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                panel = Panel(_text(entry, full=full), title=Text(_title(entry)), title_align="left")
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError, RecursionError):
                unreadable += 1
                console.print(Text(f"line {number} is no journal line", "red"))
                continue
            shown += 1
            console.print(panel)
    console.print(Text(f"{shown} lost write{'' if shown == 1 else 's'}"))
    if unreadable:
        raise typer.Exit(1)


def _title(entry: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(entry["at"]).astimezone().isoformat(sep=" ", timespec="seconds")
    return printable(f"{at}  {entry['call']}  {entry['outcome']}")


def _text(entry: dict[str, Any], *, full: bool) -> Text:
    # Text objects and no markup: a conversation may hold [bold] or :smile:.
    whose = ", ".join(f"{key} {value}" for key, value in entry.get("context", {}).items())
    parts = [_part("whose", whose)] if whose else []
    parts.append(_part("why", str(entry["error"])))
    for attempt in entry["attempts"]:
        for problem in attempt["problems"]:
            where = f"{problem['path']}: " if problem["path"] else ""
            parts.append(Text(printable(f"  attempt {attempt['number']}: {where}{problem['message']}")))
    for message in entry.get("messages", ()):
        parts.append(_part(str(message.get("role")), _clipped(message.get("content"), full=full)))
    for number, reply in enumerate(entry.get("replies", ()), 1):
        parts.append(_part(f"reply {number}", _clipped(reply, full=full)))
    if "messages_sha256" in entry:
        digest = entry["messages_sha256"]
        parts.append(Text(printable(f"messages are not kept (HYMEMORY_JOURNAL_CONTENT=off): sha256 {digest}")))
    return Text("\n").join(parts)


def _part(name: str, text: str) -> Text:
    return Text.assemble((printable(name), "bold"), " ", printable(text))


def _clipped(content: Any, *, full: bool) -> str:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    if full or len(text) <= _SHOWN:
        return text
    # The end is what the host added: long system prompts stand at the front.
    return f"[... {len(text) - _SHOWN:,} characters] {text[-_SHOWN:]}"

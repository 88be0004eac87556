"""``hymemory lost``: what a journal of lost writes holds."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel

_SHOWN = 2000


def lost(
    file: Annotated[Path, typer.Argument(help="The file that HYMEMORY_JOURNAL names.", exists=True, dir_okay=False)],
    full: Annotated[bool, typer.Option("--full", help="Show messages whole, however long.")] = False,
) -> None:
    """Show each lost write of a journal: when, whose, why, and the conversation that was not remembered.

    Exit code 1 if a line of the file cannot be read.
    """
    console = Console()
    unreadable = 0
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                console.print(Panel(_text(entry, full=full), title=_title(entry), title_align="left"))
            except (ValueError, KeyError, TypeError, AttributeError):
                unreadable += 1
                console.print(f"[red]line {number} is no journal line[/red]")
    if unreadable:
        raise typer.Exit(1)


def _title(entry: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(entry["at"]).astimezone().isoformat(sep=" ", timespec="seconds")
    whose = " ".join(f"{key} {value}" for key, value in entry.get("context", {}).items())
    return escape(f"{at}  {entry['call']}  {entry['outcome']}  {whose}".rstrip())


def _text(entry: dict[str, Any], *, full: bool) -> str:
    parts = [f"[bold]why[/bold] {escape(str(entry['error']))}"]
    for attempt in entry["attempts"]:
        for problem in attempt["problems"]:
            where = f"{problem['path']}: " if problem["path"] else ""
            parts.append(f"  attempt {attempt['number']}: {escape(where + problem['message'])}")
    for message in entry.get("messages", ()):
        parts.append(f"[bold]{escape(str(message.get('role')))}[/bold] {_clipped(message.get('content'), full=full)}")
    for number, reply in enumerate(entry.get("replies", ()), 1):
        parts.append(f"[bold]reply {number}[/bold] {_clipped(reply, full=full)}")
    if "messages_sha256" in entry:
        parts.append(f"messages are not kept (HYMEMORY_JOURNAL_CONTENT=off): sha256 {entry['messages_sha256']}")
    return "\n".join(parts)


def _clipped(content: Any, *, full: bool) -> str:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be printed
    if full or len(text) <= _SHOWN:
        return escape(text)
    # The end is what the host added: long system prompts stand at the front.
    return escape(f"[... {len(text) - _SHOWN:,} characters] {text[-_SHOWN:]}")

"""``hymemory doctor``: will writes be kept with these settings, this server and these hosts?

Exit codes: 1 if a step is ``bad``: writes will be lost, be it that the server is stopped, refuses the key, serves
another model, ignores schemas or thinks, or that a host cannot work. 2 if none is, and a step that decides
on that is ``unknown``. Otherwise 0: a warning never changes the exit code, nor that the server's version or its
leave for white space is unknown.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import typer
from rich.console import Console
from rich.text import Text

from hymemory_adapters import __version__
from hymemory_adapters.cli import checks_local, checks_model, checks_server
from hymemory_adapters.cli.check import Context, Finding, Step, Verdict, worst
from hymemory_adapters.cli.text import printable

_ANSWERS = ("settings", "reachable")
_SERVED = (*_ANSWERS, "key", "model")

STEPS = (
    Step("settings", checks_local.settings),
    Step("reachable", checks_server.reachable, ("settings",)),
    Step("version", checks_server.version, _ANSWERS, decides=False),
    Step("key", checks_server.key, _ANSWERS),
    Step("model", checks_server.model, (*_ANSWERS, "key")),
    Step("context", checks_server.context_length, _SERVED),
    Step("schema", checks_model.schema, _SERVED),
    Step("thinking", checks_model.thinking, _SERVED),
    Step("white space", checks_model.white_space, (*_SERVED, "thinking"), decides=False),
    Step("grammars", checks_model.grammars, _SERVED),
    Step("hosts", checks_local.hosts),
    Step("journal", checks_local.journal, ("settings",)),
)
_STYLES = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.BAD: "bold red",
    Verdict.UNKNOWN: "magenta",
    Verdict.SKIPPED: "dim",
}

_VERDICT, _NAME = 9, 13
"""The widths of the columns in front of the text."""
_USER_INFO = re.compile(r"://[^/\s@'\"]*@")
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

Results = dict[str, Sequence[Finding]]


def doctor(
    base_url: Annotated[str, typer.Option(help="In place of HYMEMORY_BASE_URL, as a host's config block has it.")] = "",
    model: Annotated[str, typer.Option(help="In place of HYMEMORY_MODEL, as a host's config block has it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")] = False,
) -> None:
    """Check settings, server, model and hosts, step by step.

    Run it with the app's Python and environment; a .env file is not read.
    It also has the server compile the grammars of the write calls.

    Exit code: 0 all is well, 1 something will lose writes, 2 it cannot be told.
    """
    block = {name: value for name, value in (("base_url", base_url), ("model", model)) if value}
    context = Context(block=block)
    console = Console(highlight=False)
    busy = console.is_terminal and not as_json
    printer = _Printer(console)
    results: Results = {}
    for step in STEPS:
        with console.status(f"checking: {step.name}") if busy else contextlib.nullcontext():
            results[step.name] = run(step, context, results)
        if not as_json:
            printer.show(step.name, results[step.name])
    code = exit_code(results)
    if as_json:
        typer.echo(json.dumps(_as_data(results, code), indent=2))
    else:
        console.print(Text(f"\n{_summary(results, code)}", _STYLES[_OF_CODE[code]]))
    raise typer.Exit(code)


_OF_CODE = (Verdict.OK, Verdict.BAD, Verdict.UNKNOWN)


def run(step: Step, context: Context, results: Results) -> Sequence[Finding]:
    """Do one step; no secret is in what it returns, and it never raises."""
    for name in step.needs:
        if worst(results[name]) in (Verdict.BAD, Verdict.SKIPPED):
            return [Finding(Verdict.SKIPPED, f"needs {name}")]
    try:
        with contextlib.redirect_stdout(sys.stderr):  # hosts may print while they are imported
            found = step.check(context)
    except Exception as error:
        found = [Finding(Verdict.UNKNOWN, f"the check itself failed: {type(error).__name__}", "please report it")]
    hide = _hiding(context)
    return [
        Finding(finding.verdict, hide(finding.text), hide(finding.do), _hidden(finding.data, hide)) for finding in found
    ]


def exit_code(results: Results) -> int:
    """Say in a number what the verdicts come to."""
    verdicts = {name: worst(found) for name, found in results.items()}
    if Verdict.BAD in verdicts.values():
        return 1
    return 2 if any(verdicts[step.name] is Verdict.UNKNOWN for step in STEPS if step.decides) else 0


def _summary(results: Results, code: int) -> str:
    counted = [step.name for step in STEPS if code == 1 or step.decides]
    names = ", ".join(name for name in counted if worst(results[name]) is _OF_CODE[code])
    if code == 1:
        return f"Writes will be lost: {names}."
    if code == 2:
        return f"It cannot be told whether writes will be lost: {names}."
    warned = [name for name, found in results.items() if worst(found) is Verdict.WARNING]
    return f"Writes will be kept. Worth a look: {', '.join(warned)}." if warned else "Writes will be kept."


# -- printing --------------------------------------------------------------------------------------


class _Printer:
    """Prints the steps as they come; steps that are skipped for one reason share a line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._skipped: list[str] = []
        self._why = ""

    def show(self, name: str, found: Sequence[Finding]) -> None:
        if worst(found) is Verdict.SKIPPED:
            if found[0].text != self._why:
                self.flush()
            self._why = found[0].text
            self._skipped.append(name)
            return
        self.flush()
        for finding in found:
            self._print(finding.verdict, name, finding.text)
            if finding.do:
                self._print(None, "", f"-> {finding.do}", "bold" if finding.verdict is Verdict.BAD else "")
            name = ""

    def flush(self) -> None:
        if self._skipped:
            self._print(Verdict.SKIPPED, "", f"{', '.join(self._skipped)}: {self._why}")
        self._skipped = []

    def _print(self, verdict: Verdict | None, name: str, text: str, style: str = "") -> None:
        head = f"{verdict.value if verdict else '':{_VERDICT}}{name:{_NAME}}"
        lines = text.split("\n")
        if self._console.is_terminal:  # into a pipe, a line stays a line
            width = max(20, self._console.width - len(head))
            lines = [part for line in lines for part in textwrap.wrap(line, width, **_WHOLE_WORDS)]
        for line in lines:
            row = Text.assemble((head[:_VERDICT], _STYLES[verdict] if verdict else ""), head[_VERDICT:], (line, style))
            self._console.print(row, soft_wrap=True)
            head = " " * len(head)


def _as_data(results: Results, code: int) -> dict[str, Any]:
    return {
        "version": __version__,
        "exit_code": code,
        "summary": _summary(results, code),
        "steps": [
            {
                "step": name,
                "verdict": worst(found).value,
                "findings": [
                    {"verdict": each.verdict.value, "text": each.text, "do": each.do, "data": dict(each.data)}
                    for each in found
                ],
            }
            for name, found in results.items()
        ],
    }


# -- secrets ---------------------------------------------------------------------------------------


def _hiding(context: Context) -> Callable[[str], str]:
    """Make what takes secrets out of a text: a server may quote them, whatever we do."""
    secrets = sorted({secret for secret in _secrets(context) if len(secret) >= 4}, key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "[hidden]")
        return printable(_USER_INFO.sub("://", text))

    return hide


def _secrets(context: Context) -> Iterator[str]:
    environ = context.environ
    urls = [context.block.get("base_url", ""), environ.get("HYMEMORY_BASE_URL", "")]
    urls += [value for name, value in environ.items() if name.lower().endswith("_proxy") and "@" in value]
    yield environ.get("HYMEMORY_API_KEY", "").strip()
    if context.settings is not None:
        urls.append(context.settings.base_url)
        if context.settings.api_key is not None:
            yield context.settings.api_key.get_secret_value()
        yield from (value for value in context.settings.headers.values() if len(value) >= 8)
    for url in urls:
        user, _, password = urlsplit(url).netloc.rpartition("@")[0].partition(":")
        secret = password or user  # a user name alone is a token
        yield from (secret, unquote(secret))


def _hidden(data: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return hide(data)
    if isinstance(data, Mapping):
        return {key: _hidden(value, hide) for key, value in data.items()}
    return [_hidden(item, hide) for item in data] if isinstance(data, (list, tuple)) else data

"""Write the README's table of hosts from ``hosts.toml``; with ``--check``, only say whether it is up to date.

Usage: ``python tools/readme_table.py [--check] [README.md]``
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
HOSTS = ROOT / "src" / "hymemory_adapters" / "hosts.toml"
FIRST = "<!-- hosts: written by tools/readme_table.py from src/hymemory_adapters/hosts.toml -->\n"
LAST = "<!-- end of hosts -->\n"
HEADINGS = ("host", "one key", "supported", "tested", "state")


def table(hosts: dict[str, dict[str, Any]]) -> str:
    """The table in Markdown, a row a host. Of a host that is still to come, no version is promised."""
    lines: list[tuple[str, ...]] = []
    for host in hosts.values():
        versions = [entry["version"] for entry in host.get("tested", ())]
        about = (f"`{host['supported']}`", ", ".join(versions), "here") if versions else ("", "", "to come")
        lines.append((host["title"], host["switch"], *about))
    head, *body = [f"| {' | '.join(cells)} |\n".replace("  ", " ") for cells in (HEADINGS, *lines)]
    return "".join((head, "|---" * len(HEADINGS), "|\n", *body))


def main() -> None:
    """Replace what stands between the two comments; the exit code of ``--check`` is 1 if that would change it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("readme", nargs="?", type=Path, default=ROOT / "README.md")
    given = parser.parse_args()
    text = given.readme.read_text(encoding="utf-8")
    before, first, rest = text.partition(FIRST)
    _, last, after = rest.partition(LAST)
    if not (first and last):
        sys.exit(f"{given.readme} does not hold the two lines that the table stands between: {FIRST}{LAST}")
    fresh = before + FIRST + table(tomllib.loads(HOSTS.read_text(encoding="utf-8"))) + LAST + after
    if given.check and fresh != text:
        sys.exit(f"{given.readme} has another table of hosts than hosts.toml: run python tools/readme_table.py")
    if fresh != text:
        given.readme.write_text(fresh, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

"""Rows of figures: raw values, what they are compared with, budgets; as Markdown and as JSON.

The machine may be shared and noisy. So contenders take turns in rounds, and what counts is the *paired* ratio: each
round's figure over the same round's figure of the row that it is compared with. Shown are the median of these ratios
and, in brackets, their quartiles.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Budget:
    """What a row must keep: at most ``limit`` for its ``kind``."""

    kind: str
    """``median``, ``extra`` (the median of the paired differences) or ``ratio`` (of the paired ratios)."""
    limit: float


@dataclass
class Row:
    """One thing that was measured.

    Attributes:
        section: the table that it stands in.
        name: what was measured.
        unit: of the values.
        values: every single measurement.
        rounds: one value a round, for the comparison; without it the values are the rounds.
        against: what it is compared with.
        base: the same of that, one value a round.
        budgets: what it must keep.
        more: whatever else there is to know, by column.
    """

    section: str
    name: str
    unit: str
    values: list[float]
    rounds: list[float] = field(default_factory=list)
    against: str = ""
    base: list[float] = field(default_factory=list)
    budgets: tuple[Budget, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def per_round(self) -> list[float]:
        """The values that are compared."""
        return self.rounds or self.values

    @property
    def ratio(self) -> dict[str, float]:
        """The paired ratios."""
        return summary([mine / base for mine, base in zip(self.per_round, self.base, strict=True)])

    @property
    def extra(self) -> dict[str, float]:
        """The paired differences."""
        return summary([mine - base for mine, base in zip(self.per_round, self.base, strict=True)])

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """What became of the budgets."""
        found = []
        for budget in self.budgets:
            figures = {"median": summary(self.values)} if budget.kind == "median" else {}
            figures |= {"ratio": self.ratio, "extra": self.extra} if self.base else {}
            figure = figures[budget.kind]["median"]
            found.append({"kind": budget.kind, "limit": budget.limit, "figure": figure, "kept": figure <= budget.limit})
        return found


def summary(values: Sequence[float]) -> dict[str, float]:
    """Minimum, quartiles, 95th percentile, and how many values there are."""
    ordered = sorted(values)
    low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    return {
        "n": len(ordered),
        "min": ordered[0],
        "q1": low,
        "median": middle,
        "q3": high,
        "p95": ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))],
    }


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Everything, the single measurements too."""
    told = []
    for row in rows:
        entry: dict[str, Any] = {
            "section": row.section,
            "name": row.name,
            "unit": row.unit,
            **summary(row.values),
            "values": row.values,
            "rounds": row.rounds,
            **row.more,
        }
        if row.base:
            entry |= {"against": row.against, "base": row.base, "ratio": row.ratio, "extra": row.extra}
        entry["budgets"] = row.verdicts
        told.append(entry)
    return told


def as_markdown(rows: Sequence[Row]) -> str:
    """One table a section, in the order in which the sections came."""
    return "\n\n".join(_table(name, rows) for name in dict.fromkeys(row.section for row in rows))


def _table(section: str, rows: Sequence[Row]) -> str:
    mine = [row for row in rows if row.section == section]
    unit = mine[0].unit
    extra_columns = list(dict.fromkeys(key for row in mine for key in row.more))
    heads = [section, f"median, {unit}", "min", "p95", f"extra, {unit}", "ratio", *extra_columns, "budget"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row in mine:
        figures = summary(row.values)
        extra = ratio = ""
        if row.base:
            ratios = row.ratio
            extra = _number(row.extra["median"], sign=True)
            ratio = f"{ratios['median']:.3f} ({ratios['q1']:.3f} to {ratios['q3']:.3f})"
        cells = [row.name, *(_number(figures[key]) for key in ("median", "min", "p95")), extra, ratio]
        cells += [str(row.more.get(key, "")) for key in extra_columns]
        lines.append(_line([*cells, "; ".join(map(_verdict, row.verdicts))]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _verdict(budget: dict[str, Any]) -> str:
    word = "kept" if budget["kept"] else "**MISSED**"
    return f"{word} ({budget['kind']} at most {budget['limit']:g})"


def _number(value: float, *, sign: bool = False) -> str:
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    return f"{value:{'+' if sign else ''},.{digits}f}"

"""The conditions of tests/fixtures/conditions/practice.toml, and the table that docs/certificates.md shows.

`python -m tests.unit.certificates.practice` writes the table anew into the page.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission
from tamis.planning.join_verdict import JoinVerdict, judge
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

ROOT = Path(__file__).parents[3]
FILE = ROOT / "tests/fixtures/conditions/practice.toml"
PAGE = ROOT / "docs/certificates.md"
BEGIN, END = "<!-- conditions -->\n", "<!-- end of conditions -->\n"


@dataclass(frozen=True)
class Condition:
    """One condition; by stream what must be proved of it: "value | sides | rule" or "refused | reason"."""

    name: str
    streams: str
    where: str
    verdict: dict[str, str]
    functions: str

    def catalog(self) -> Catalog:
        """Streams with the declared domains, joined within 5 s, and the alert q."""
        statements, names = [self.functions], []
        for part in self.streams.split(";"):
            name, _, columns = part.strip().partition(": ")
            names.append(name)
            defined = ", ".join(_column(column) for column in columns.split(","))
            statements.append(
                f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP, {defined}, "
                "WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
            )
        near = " AND ".join(
            f"{a}.k = {b}.k AND ABS({a}.ts - {b}.ts) <= INTERVAL '5' SECOND"
            for a, b in combinations(names, 2)
        )
        statements.append(
            f"CREATE ALERT q AS SELECT {names[0]}.k FROM {', '.join(names)} WHERE {near} AND ({self.where})"
        )
        return catalog_of(*statements)

    def judged(self) -> JoinVerdict:
        """What Tamis says of it."""
        catalog = self.catalog()
        return judge(catalog.alerts["q"], catalog)


def _column(text: str) -> str:
    """`rh 1 100 NOT NULL`, or `peak BOOLEAN`, as SQL has it."""
    name, first, *more = text.split()
    if not more:
        return f"{name} {first}"
    return f"{name} DOUBLE {' '.join(more[1:])} CHECK ({name} BETWEEN {first} AND {more[0]})"


def conditions() -> list[Condition]:
    """All of the file."""
    document: dict[str, Any] = tomllib.loads(FILE.read_text())
    return [Condition(**one, functions=document["functions"]) for one in document["condition"]]


def found(omission: Omission) -> str:
    """A source's verdict as the file has it."""
    if omission.value is None:
        return f"refused | {omission.reason.removeprefix('no omission: ')}"
    return f"{to_sql(omission.value)} | {omission.sides} | {omission.certificate}"


def table() -> str:
    """A row for each stream of each condition."""
    lines = ["| condition | stream | omission by | sides | rule |", "|---|---|---|---|---|"]
    for condition in conditions():
        shown = f"{condition.name}: `{condition.where}`"
        for stream, verdict in condition.verdict.items():
            value, _, rest = verdict.partition(" | ")
            sides, _, rule = rest.rpartition(" | ")
            omitted = f"`{value}` | {sides} | {rule}" if sides else f"none | | {rest}"
            lines.append(f"| {shown} | `{stream}` | {omitted} |")
            shown = ""
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    PAGE.write_text(head + BEGIN + table() + END + rest.partition(END)[2])

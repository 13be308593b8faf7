"""Constructs of the reference page as templates: SQL with holes for expressions, relations and names.

The templates are in tests/fixtures/sql/constructs.txt. A hole such as `{number}` is filled with a template of
this kind or with a column. `{a}` is the alias of a relation that the place of the template can name, and
`{b}` and `{c}` those of relations that the template adds. All relations have the columns of `COLUMNS`, so
that a template fits each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("k", "ts", "x", "n", "m", "s", "b", "at")
_FILE = Path(__file__).resolve().parents[3] / "fixtures" / "sql" / "constructs.txt"


@dataclass(frozen=True)
class Construct:
    """One template, of the kind of text that it makes."""

    kind: str
    template: str


# What fills most holes of a kind; columns more often than constants.
SIMPLE = {
    "number": (*("{a}.x", "{a}.n", "{a}.m") * 4, "3", "0.5"),
    "integer": ("{a}.n", "{a}.m", "{a}.n", "7"),
    "text": (*("{a}.s", "{a}.k") * 4, "'v'"),
    "boolean": ("{a}.b", "{a}.x > 1", "{a}.n < 3"),
    "time": (*("{a}.ts", "{a}.at") * 4, "TIMESTAMP '2026-01-01T00:00:10Z'"),
    "span": ("INTERVAL '5' SECOND", "{a}.ts - {a}.at"),
    "condition": ("{a}.x > 0.5", "{a}.n < 4", "{a}.s <> 'q'", "{a}.b"),
    "item": ("one", "two"),
}


def _read() -> dict[str, tuple[Construct, ...]]:
    """The constructs of each kind."""
    blocks = re.split(r"^---- ", _FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for block in blocks:
        kind, *lines = block.splitlines()
        found[kind] = tuple(Construct(kind, one) for one in lines if one and not one.startswith("--"))
    return found


OF_KIND = _read()
CONSTRUCTS = tuple(one for ones in OF_KIND.values() for one in ones)

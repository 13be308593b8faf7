"""Table of functions on docs/sql.md, made from the references of the entries in the table of functions.

`python -m tests.unit.repository.functions_page` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.expressions.functions.entry import references

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql.md"
HEAD = "| function | value | elsewhere |\n|---|---|---|\n"


def table() -> str:
    """The rows of all entries; those with the same value share one."""
    usages: dict[str, list[str]] = {}
    elsewhere: dict[str, list[str]] = {}
    for reference in references():
        usages.setdefault(reference.value, []).append(reference.usages)
        elsewhere.setdefault(reference.value, []).extend(filter(None, [reference.elsewhere]))
    rows = [(", ".join(usages[value]), value, "; ".join(elsewhere[value])) for value in usages]
    return HEAD + "".join(f"| {' | '.join(row)} |\n".replace(" |  |", " | |") for row in rows)


def page() -> str:
    """The page with this table."""
    before, _, after = PAGE.read_text().partition(HEAD)
    return before + table() + after[after.index("\n\n") + 1 :]


if __name__ == "__main__":
    PAGE.write_text(page())

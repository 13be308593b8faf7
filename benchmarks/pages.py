"""Tables of benchmarks in pages of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.harness import GOAL_COLUMNS, Result, goal_cells, text


def markdown(result: Result) -> str:
    """The figures as a table."""
    lines = [f"| {' | '.join(result.columns)} |", f"|---|{'---:|' * (len(result.columns) - 1)}"]
    for row in result.rows:
        lines.append(f"| {' | '.join(text(row.get(name)) for name in result.columns)} |")
    return "\n".join(lines)


def fill(directory: Path, result: Result, facts: dict[str, Any]) -> None:
    """Write the table, the notes and the facts about the machine into every page below `directory` with marks
    for this result, between `<!-- NAME -->` and `<!-- end of NAME -->`. Its goals go into the table of goals.
    """
    notes = "\n".join(f"- {note}" for note in (*result.notes, _where(facts)))
    for page in directory.rglob("*.md"):
        old = page.read_text()
        new = re.sub(
            rf"(<!-- {re.escape(result.name)} -->\n).*?(<!-- end of {re.escape(result.name)} -->)",
            lambda marks: f"{marks[1]}\n{markdown(result)}\n\n{notes}\n\n{marks[2]}",
            old,
            flags=re.DOTALL,
        )
        new = _GOALS.sub(lambda marks: f"{marks[1]}\n{_goals(marks, result)}\n\n{marks[4]}", new)
        if new != old:
            page.write_text(new)


# The table of goals: its first mark names the benchmarks whose goals it has, in this order.
_GOALS = re.compile(r"(<!-- goals of ([^>]*) -->\n)(.*?)(<!-- end of goals -->)", re.DOTALL)


def _goals(marks: re.Match[str], result: Result) -> str:
    """The table of goals with those of the result. Rows of other benchmarks stay."""
    kept: dict[str, list[str]] = {name: [] for name in marks[2].split()}
    for line in marks[3].splitlines():
        if (name := line.strip("| ").partition(" | ")[0]) in kept:
            kept[name].append(line)
    if result.name in kept:
        kept[result.name] = [f"| {' | '.join((result.name, *goal_cells(goal)))} |" for goal in result.goals]
    head = [f"| {' | '.join(('benchmark', *GOAL_COLUMNS))} |", "|" + "---|" * (1 + len(GOAL_COLUMNS))]
    return "\n".join([*head, *(line for lines in kept.values() for line in lines)])


def _where(facts: dict[str, Any]) -> str:
    versions = ", ".join(
        f"{name} {facts['versions'][name]}" for name in ("numba", "numpy", "sortedcontainers")
    )
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, {facts['system']}, "
        f"Python {facts['python']}, {versions}; load of the minute before: {facts['load']:.1f}"
    )

"""Tables on standard output, and outcomes of statements at the registry, for people."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tamis.cli.common.output import write
from tamis.cli.common.state_tables import HEADINGS, state_rows
from tamis.printable import printable
from tamis.wording.bound_units import bound_unit

# As in the explanations of `tamis explain`.
_WIDTH = 100


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings: in a terminal with wrapped cells, else in aligned, unwrapped columns."""
    # A line break in a value would begin a row that isn't there.
    rows = [[printable(cell) for cell in row] for row in rows]
    headings = [printable(heading) for heading in headings]
    if not sys.stdout.isatty():
        _plain([headings, *rows])
        return
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        # A name that is cut off would be of no use: it goes on in the next line.
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(markup=False, emoji=False, highlight=False).print(table)


def show_notes(notes: Sequence[str]) -> None:
    """Print texts about rows below their table: in a terminal wrapped to its width, else a line each."""
    if notes:
        write()
    width = shutil.get_terminal_size().columns
    for note in map(printable, notes):
        lines = textwrap.wrap(note, width, subsequent_indent="  ") if sys.stdout.isatty() else [note]
        write("\n".join(lines))


def _plain(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show_outcome(outcome: dict[str, Any]) -> None:
    """Print what a statement has made, changed, explained or shown."""
    if "rows" in outcome:
        what = str(outcome["statement"]).removeprefix("show ")
        show_table(HEADINGS[what], [row for entry in outcome["rows"] for row in state_rows(what, entry)])
        return
    for line in _lines(outcome):
        write(printable(line))


def _lines(outcome: dict[str, Any]) -> Iterator[str]:
    explained = outcome.get("explain") or {"queries": []}
    if outcome["result"] == "explained":
        for query in explained["queries"]:
            yield from _explanation(query)
        return
    verdict = f", memory {outcome['verdict']}" if "verdict" in outcome else ""
    yield f"{outcome['kind']} {outcome['name']} {outcome['result']} (plan {outcome['plan']}{verdict})"
    for one in outcome.get("replanned", ()):
        yield from _replanned(one)
    for query in explained["queries"]:
        yield from (f"warning: {one}" for one in query.get("warnings", ()))


def _replanned(query: dict[str, Any]) -> Iterator[str]:
    """Lines about a query that reads a changed stream or function."""
    how = {"replaced": "planned again with a new definition", "kept": "goes on as it is"}
    yield f"  {query['kind']} {query['name']} {how[str(query['result'])]}, memory {query['verdict']}"
    yield from (f"    {change}" for change in query["changes"])


def _needs_all(sharing: dict[str, Any]) -> Iterator[str]:
    """Lines about the other readers of a topic that need every tuple."""
    named = sharing.get("needs_all", ())
    yield from map(_needy, named)
    if more := sharing.get("needs_all_count", len(named)) - len(named):
        need = "1 more reader of the topic needs" if more == 1 else f"{more} more readers of the topic need"
        yield f"    {need} every tuple"


def _needy(reader: dict[str, Any]) -> str:
    """A line about another reader of the topic for which edges publish every tuple of its filter."""
    of = "every tuple" if reader["filter"] is None else f"every tuple with {reader['filter']}"
    return f"    {reader['kind']} {reader['name']} reads the topic, too, and needs {of}: {reader['why']}"


def _explanation(query: dict[str, Any]) -> Iterator[str]:
    """The verdict on a query: what edges omit, and how much memory it needs, as `tamis explain` words it."""
    yield f"{query['kind']} {query['name']}: {'accepted' if query['accepted'] else 'REFUSED'}"
    yield from (f"  warning: {one}" for one in query.get("warnings", ()))
    if query["accepted"]:
        for source in query["streams"]:
            alias = "" if source["alias"] == source["stream"] else f" as {source['alias']}"
            yield f"  {source['stream']}{alias}: {source['omission']['reason']}"
            for line in source.get("sent", {}).get("text", ()):
                yield from textwrap.wrap(line, _WIDTH, initial_indent="    ", subsequent_indent="      ")
            if source["key"]:
                yield f"    for each {', '.join(source['key'])}"
            if source["predicate"] is not None:
                yield f"    of tuples with {source['predicate']}"
            if "sharing" in source:
                yield f"    topic {source['sharing']['topic']}: {source['sharing']['reason']}"
                yield from _needs_all(source["sharing"])
    memory = query["memory"]
    most = "" if memory["bound"] is None else f", at most {memory['bound']} {bound_unit(memory['theorem'])}"
    yield f"  memory {memory['verdict']}{most}"
    yield f"    {memory['reason']}"
    yield from (f"    it would be accepted with {repair}" for repair in memory["repairs"])
    if "replaces" in query:
        yield from _replacement(query["name"], query["replaces"])


def _replacement(name: str, replaced: dict[str, Any]) -> Iterator[str]:
    """Lines about the alert in service that a query would replace."""
    yield f"  replaces {name} of plan {replaced['plan']}"
    for one in (*replaced["changes"], *replaced["transition"]):
        yield from textwrap.wrap(one, _WIDTH, initial_indent="    ", subsequent_indent="      ")

"""Tables on standard output: fitted to a terminal, or whole for a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tamis.cli.common.output import write
from tamis.printable import printable


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

"""Output of commands. All of it passes through here, so that no text from outside steers a terminal."""

from __future__ import annotations

import sys
from typing import Any

import click
import orjson

from tamis.printable import printable_json, printable_lines


def write(text: str = "") -> None:
    """Print lines of text to standard output."""
    click.echo(printable_lines(text))


def say(notice: str) -> None:
    """Print a notice to standard error."""
    click.echo(printable_lines(notice), err=True)


def write_json(document: Any, *, indented: bool = True) -> None:
    """Print a JSON document to standard output: its exact text to a file or a pipe, and an equal document of
    printable characters to a terminal.
    """
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 if indented else 0).decode()
    click.echo(printable_json(text) if sys.stdout.isatty() else text)

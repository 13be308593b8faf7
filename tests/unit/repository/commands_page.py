"""The page of all commands, from their help: `python -m tests.unit.repository.commands_page` writes it."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import click

from tamis.cli import main, modules, subcommand, summary

PAGE = Path(__file__).resolve().parents[3] / "docs" / "commands.md"

INTRODUCTION = """\
# Commands

Every command of `tamis` with its arguments and options. `tamis COMMAND --help` shows the same in a terminal.
[Command line](cli.md) has exit codes, messages and files, and says more about some commands.
`python -m tests.unit.repository.commands_page` makes this page.
"""

# What the subcommands of a folder have in common.
HEADINGS = {
    "query": "Queries over recordings",
    "manage": "A running fleet",
    "fleet": "A fleet on this machine",
    "services": "Single services",
}


def page() -> str:
    """The whole page."""
    by_folder = {
        folder: sorted(name for name, path in modules().items() if path.parent.name == folder)
        for folder in HEADINGS
    }
    parts = [INTRODUCTION]
    for folder, names in by_folder.items():
        links = [f"| [`{name}`](#tamis-{name}) | {text(summary(modules()[name], name))} |" for name in names]
        parts += [
            f"## {HEADINGS[folder]}\n",
            "| command | what it does |\n|---|---|\n" + "\n".join(links) + "\n",
        ]
        parts += [section(name) for name in names]
    return "\n".join(parts)


def section(name: str) -> str:
    """The part of one subcommand: its usage, its description, its options, and examples."""
    command = subcommand(name)
    context = click.Context(command, info_name=name, parent=click.Context(main, info_name="tamis"))
    pieces = " ".join(command.collect_usage_pieces(context))
    parts = [f"### `tamis {name}`\n", f"```text\ntamis {name} {pieces}\n```\n"]
    parts += [f"{text(paragraph)}\n" for paragraph in paragraphs(command.help or "")]
    rows = [row for parameter in command.params if (row := option(parameter, context)) is not None]
    if rows:
        parts.append("| option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    examples = re.sub(r"^\s*\x08?\s*Examples?:\n", "", inspect.cleandoc(command.epilog or ""))
    shown, _, rest = examples.partition("\n\n")
    parts.append(f"```sh\n{textwrap.dedent(shown).strip()}\n```\n")
    parts += [f"{text(paragraph)}\n" for paragraph in paragraphs(rest)]
    return "\n".join(parts)


def option(parameter: click.Parameter, context: click.Context) -> str | None:
    """The row of an option; None for an argument, which the usage shows."""
    found = parameter.get_help_record(context)
    if found is None:
        return None
    names, meaning = found
    shown = names.replace("|", r"\|")  # else it would end the cell of the table
    return f"| `{shown}` | {text(meaning)} |"


def paragraphs(help_text: str) -> list[str]:
    """The paragraphs of a help text, each in one line, and lists with the lines that they have."""
    blocks = [
        block.strip() for block in re.split(r"\n\s*\n", help_text.replace("\x08\n", "")) if block.strip()
    ]
    return [" ".join(block.split()) for block in blocks]


def text(meaning: str) -> str:
    """A text of the help as Markdown.

    >>> text("a * b, [0<=x<=9], `a * b`")
    'a \\\\* b, [0&lt;=x&lt;=9], `a * b`'
    """
    return re.sub(r"[<>|*_](?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", lambda sign: _escaped(sign[0]), meaning)


def _escaped(sign: str) -> str:
    # The site's Markdown shows the backslash before "<", as it isn't a sign of Markdown.
    return {"<": "&lt;", ">": "&gt;"}.get(sign, rf"\{sign}")


if __name__ == "__main__":
    PAGE.write_text(page())

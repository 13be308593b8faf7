"""The page of commands is made from their help, and has every command and every option."""

from __future__ import annotations

import re

import click
import markdown
from tests.unit.repository import commands_page

from tamis.cli import main


def test_the_page_is_up_to_date() -> None:
    """After a change: `python -m tests.unit.repository.commands_page`."""
    assert commands_page.PAGE.read_text() == commands_page.page()


def test_the_site_shows_no_signs_of_markdown_on_the_page() -> None:
    """Other Markdown than that of the code-hosting view: it leaves a backslash before most signs as it is."""
    html = markdown.markdown(commands_page.page(), extensions=["tables", "pymdownx.superfences"])
    shown = re.sub(r"<(pre|code)\b.*?</\1>", "", html, flags=re.S)
    assert "[0&lt;=x&lt;=65535]" in shown
    assert re.findall(r"\\.", shown) == [r"\?"]  # a command of the shell of `tamis sql`


def test_every_command_and_every_option_is_on_the_page() -> None:
    page = commands_page.PAGE.read_text()
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        section = page.partition(f"### `tamis {name}`\n")[2].partition("\n### ")[0]
        options = [one for parameter in command.params for one in parameter.opts if one.startswith("--")]
        assert section and all(f"{option}" in section for option in options), name

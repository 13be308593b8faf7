"""Colours of SQL as it is typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

# Colours of the terminal's own palette, which fits light and dark backgrounds.
STYLE = Style.from_dict(
    {
        "sql.keyword": "bold ansiblue",
        "sql.function": "ansimagenta",
        "sql.name": "ansicyan",
        "sql.string": "ansigreen",
        "sql.number": "ansigreen",
        "sql.comment": "italic ansibrightblack",
    }
)
_PART = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>'(?:[^']|'')*(?:'|\Z))|(?P<quoted>\"[^\"]*(?:\"|\Z))"
    r"|(?P<number>\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b)|(?P<word>[^\W\d]\w*)|(?P<other>\s+|.)",
    re.DOTALL,
)


def fragments(text: str, names: dict[str, Any]) -> StyleAndTextTuples:
    """The text in parts, each with the class of its style."""
    keywords = {word for phrase in names["keywords"] for word in phrase.split()}
    functions = {*names["builtin"], *(one["name"] for one in names["functions"])}
    known = {one["name"] for one in names["streams"]} | {*names["alerts"], *names["patterns"]}
    found: StyleAndTextTuples = []
    for match in _PART.finditer(text):
        kind, part = str(match.lastgroup), match.group()
        if kind == "word":
            if part.lower() in known:
                kind = "name"
            elif part.lower() in functions and text[match.end() :].lstrip().startswith("("):
                kind = "function"
            elif part.upper() in keywords:
                kind = "keyword"
        found.append((f"class:sql.{kind}", part))
    return found


class SqlLexer(Lexer):
    """The colours for prompt_toolkit; `names` returns the newest document of the registry."""

    def __init__(self, names: Callable[[], dict[str, Any]]) -> None:
        self._names = names

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The function that returns the parts of a line."""
        lines = list(split_lines(fragments(document.text, self._names())))
        return lambda number: lines[number] if number < len(lines) else []

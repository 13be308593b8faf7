"""Completion of SQL: names, keywords and statement forms that fit where the cursor is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

FORMS = (
    "SELECT * FROM",
    *("CREATE ALERT", "CREATE OR REPLACE ALERT", "CREATE STREAM", "CREATE FUNCTION", "CREATE TABLE"),
    *("CREATE PATTERN", "ALTER STREAM", "PAUSE ALERT", "RESUME ALERT"),
    *("DROP ALERT", "DROP STREAM", "DROP FUNCTION", "DROP TABLE", "DROP PATTERN"),
    *("SHOW ALERTS", "SHOW STREAMS", "SHOW PATTERNS", "EXPLAIN", "EXPLAIN SELECT"),
)
"""The first words of statements."""

# A string or a comment that isn't closed before the cursor, and the last word with the name before its dot.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*\n|/\*.*?\*/", re.DOTALL)
_OPEN = re.compile(r"'|\"|--|/\*")
_LAST = re.compile(r"(?:(?P<alias>\w+)\.)?(?P<word>\w*)$")
_SOURCE = re.compile(r"\b(?:FROM|JOIN|,)\s*(?P<stream>\w+)(?:\s+(?:AS\s+)?(?P<alias>\w+))?", re.IGNORECASE)

Found = tuple[str, str, int]
"""A text, its kind, and how many characters before the cursor it replaces."""


def completions(before: str, after: str, names: dict[str, Any]) -> list[Found]:
    """Completions at the cursor, in the order in which they are offered. `names`: the registry's document."""
    start = _start(before)
    statement = before[start:].lstrip()
    if _OPEN.search(_QUOTED.sub("", statement)):
        return []
    forms = list(_forms(statement))
    last = _LAST.search(statement)
    assert last is not None
    begun = last["word"].lower()
    whole = statement + after.partition(";")[0]
    found = list(dict.fromkeys(_words(statement[: last.start()], last["alias"], whole, names)))
    fitting = [(text, kind, len(begun)) for text, kind in found if text.lower().startswith(begun)]
    return forms or [(_cased(t, last["word"]) if kind == "keyword" else t, kind, n) for t, kind, n in fitting]


def _start(before: str) -> int:
    """Where the statement at the end of a text begins."""
    hidden = _QUOTED.sub(lambda match: " " * len(match.group()), before)
    return hidden.rfind(";") + 1


def _forms(statement: str) -> Iterator[Found]:
    """The statement forms that begin with all that stands before the cursor."""
    begun = " ".join(statement.upper().split()) + (" " if statement[-1:].isspace() else "")
    for form in FORMS:
        if form.startswith(begun) and form != begun:
            yield _cased(form, statement), "statement", len(statement)


def _cased(text: str, typed: str) -> str:
    return text.lower() if typed.islower() else text


def _words(
    before: str, alias: str | None, statement: str, names: dict[str, Any]
) -> Iterable[tuple[str, str]]:
    """Names and keywords that may follow a text, each with its kind."""
    streams = {one["name"]: one["columns"] for one in names["streams"]}
    kinds = {one["name"]: "table" if one["kind"] == "table" else "stream" for one in names["streams"]}
    sources: dict[str, str] = {}
    for match in _SOURCE.finditer(statement):
        stream = match["stream"].lower()
        if stream in streams:
            sources |= {stream: stream, (match["alias"] or stream).lower(): stream}
    if alias is not None:
        known = streams.get(sources.get(alias.lower(), alias.lower()), ())
        return [(one["name"], "column") for one in known]
    previous = next(iter(re.findall(r"(\w+|[^\w\s])\s*$", before)), "").upper()
    created = bool(re.search(r"\bCREATE(\s+OR\s+REPLACE)?\s+\w+\s*$", before, re.IGNORECASE))
    if created:
        return []  # the name is a new one
    if previous in ("FROM", "JOIN"):
        return list(kinds.items())
    if previous in _NAMED:
        return [(name, previous.lower()) for name in _NAMED[previous](names)]
    if previous == "EXPLAIN":
        queries = [one["name"] for one in names["streams"] if one["kind"] == "derived"]
        return [*((name, "alert") for name in names["alerts"]), *((name, "stream") for name in queries)]
    read = dict.fromkeys(sources.values()) or streams
    return [
        *((one["name"], "column") for name in read for one in streams[name]),
        *((alias, "stream") for alias in sources),
        *((one["name"], "function") for one in names["functions"]),
        *kinds.items(),
        *((word, "keyword") for word in names["keywords"]),
        *((word, "function") for word in names["builtin"]),
    ]


_NAMED: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "ALERT": lambda names: list(names["alerts"]),
    "STREAM": lambda names: [one["name"] for one in names["streams"] if one["kind"] != "table"],
    "TABLE": lambda names: [one["name"] for one in names["streams"] if one["kind"] == "table"],
    "FUNCTION": lambda names: [one["name"] for one in names["functions"]],
    "PATTERN": lambda names: list(names["patterns"]),
}


class SqlCompleter(Completer):
    """The completions for prompt_toolkit; `names` returns the newest document of the registry."""

    def __init__(self, names: Callable[[], dict[str, Any]]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The completions at the cursor of a document."""
        for text, kind, length in completions(
            document.text_before_cursor, document.text_after_cursor, self._names()
        ):
            yield Completion(text, start_position=-length, display_meta=kind)

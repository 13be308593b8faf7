"""Watched streams and their columns in the words of the user's SQL, for explanations and messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tamis.expressions.nodes import substitute
from tamis.expressions.sql_text import to_sql
from tamis.query.model import StreamDef
from tamis.query.patterns.inline_text import number_text, string_text
from tamis.query.watches import Range, Watch


def call_text(watch: Watch, function: str = "similar", alias: str = "") -> str:
    """The call that a watch stands for.

    >>> from tamis.expressions.nodes import Column, Type
    >>> call_text(Watch(Column("", "value", Type.DOUBLE), "fault", (), 0.5, (0.5, None)), alias="v")
    "similar(v.value, 'fault', 0.5, scale => (0.5, NULL))"
    """
    value = to_sql(substitute(watch.value, lambda column: replace(column, alias=alias)))
    asked = watch.asked if watch.asked == "ANY" else string_text(watch.asked)
    ranges = ((name, ends) for name, ends in (("scale", watch.scale), ("shift", watch.shift)) if ends)
    named = "".join(f", {name} => {_range_text(ends)}" for name, ends in ranges)
    return f"{function}({value}, {asked}, {number_text(watch.epsilon)}{named})"


def _range_text(ends: Range) -> str:
    low, high = ("NULL" if end is None else number_text(end) for end in ends)
    return f"({low}, {high})"


class WatchText:
    """Replaces the names of watched streams and of their columns in texts."""

    def __init__(self, watched: Sequence[StreamDef]) -> None:
        self._streams = {stream.name: stream.shown_name for stream in watched}
        watches = {watch for stream in watched for watch in stream.watches}
        self._columns: dict[str, tuple[Watch, str]] = {}
        for watch in watches:
            functions = ("similarity", "scale", "shift", "pattern")
            self._columns |= {
                column.name: (watch, function)
                for column, function in zip(watch.columns, functions, strict=True)
            }
        names = "|".join(map(re.escape, self._columns))
        self._column = re.compile(rf'(?:("(?:[^"]|"")+"|\w+)\.)?"?\b({names})\b"?( IS NOT NULL| IS NULL)?')
        self._stream = re.compile(rf"\b({'|'.join(map(re.escape, self._streams))})\b")

    def __call__(self, text: str) -> str:
        """The text with calls in place of columns, and with the names of raw streams."""
        if not self._streams:
            return text
        return self._stream.sub(lambda found: self._streams[found[1]], self._column.sub(self._call, text))

    def _call(self, found: re.Match[str]) -> str:
        alias, name, test = found.groups()
        watch, function = self._columns[name]
        bare = alias or ""
        if bare.startswith('"'):
            bare = bare[1:-1].replace('""', '"')
        if test is None or function != "similarity":
            return call_text(watch, function, bare) + (test or "")
        return ("" if "NOT" in test else "NOT ") + call_text(watch, "similar", bare)

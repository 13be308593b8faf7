"""Watched streams and their columns in the words of the user's SQL, for explanations and messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import MAX_GAP, AnyWatch, Frame, NamedPattern, Range, Watch, WindowFunction
from tamis.expressions.nodes import Expr, Literal, substitute
from tamis.expressions.sql_text import interval, to_sql

# Plans, requests and the texts of standing queries contain it, each with a limit of about a million.
MOST_CHARACTERS = 900_000


def inline_text(name: str, members: Sequence[NamedPattern]) -> str:
    """CREATE PATTERN … VALUES for one pattern with that name, or for the members `name/…` of a folder.

    >>> inline_text("peak", [NamedPattern("peak", (0.0, 2.5, 0.0))])
    'CREATE PATTERN peak VALUES (0, 2.5, 0)'
    >>> inline_text("days", [NamedPattern("days/monday", (0.0, 1.0), max_gap=3_000_000)])
    "CREATE PATTERN days VALUES ('monday', (0, 1)) WITH (max_gap = '3 s')"
    """
    if [one.name for one in members] == [name]:
        values = _values(members[0])
    else:
        prefix = f"{name}/"
        values = ", ".join(
            f"({string_text(one.name.removeprefix(prefix))}, {_values(one)})" for one in members
        )
    max_gap = members[0].max_gap
    options = "" if max_gap == MAX_GAP else f" WITH (max_gap = '{_duration(max_gap)}')"
    return f"CREATE PATTERN {name} VALUES {values}{options}"


def _values(pattern: NamedPattern) -> str:
    return f"({', '.join(map(number_text, pattern.values))})"


def _duration(microseconds: int) -> str:
    units = (("s", 1_000_000), ("ms", 1_000), ("us", 1))
    unit, length = next((unit, length) for unit, length in units if microseconds % length == 0)
    return f"{microseconds // length} {unit}"


def number_text(value: float) -> str:
    """The shortest text that is read as this double.

    >>> number_text(2.0), number_text(0.1), number_text(-0.0), number_text(1e300)
    ('2', '0.1', '-0.0', '1e+300')
    """
    whole = value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0"
    return str(int(value)) if whole else repr(value)


def string_text(text: str) -> str:
    """A text as SQL's literal."""
    return "'" + text.replace("'", "''") + "'"


def call_text(watch: Watch, function: str = "similar", alias: str = "") -> str:
    """The call that a watch stands for.

    >>> from tamis.expressions.nodes import Column, Type
    >>> call_text(Watch(Column("", "value", Type.DOUBLE), "fault", (), 0.5, (0.5, None)), alias="v")
    "similar(v.value, 'fault', 0.5, scale => (0.5, NULL))"
    """
    value = _of_alias(watch.value, alias)
    asked = watch.asked if watch.asked == "ANY" else string_text(watch.asked)
    ranges = ((name, ends) for name, ends in (("scale", watch.scale), ("shift", watch.shift)) if ends)
    named = "".join(f", {name} => {_range_text(ends)}" for name, ends in ranges)
    return f"{function}({value}, {asked}, {number_text(watch.epsilon)}{named})"


def window_text(watch: WindowFunction, alias: str = "") -> str:
    """The call of a window function, with a sign for its PARTITION BY and ORDER BY.

    >>> from tamis.expressions.nodes import Column, Type
    >>> from tamis.declarations.watches import Frame
    >>> window_text(WindowFunction("lag", Column("", "x", Type.INT), Frame(1, 1, 60), Type.INT), "a")
    'lag(a.x) OVER (…)'
    >>> window_text(WindowFunction("max", Column("", "x", Type.INT), Frame(5, 1, 60), Type.INT))
    'max(x) OVER (… ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING)'
    """
    value, frame = _of_alias(watch.value, alias), watch.frame
    if watch.function == "count" and isinstance(watch.value, Literal):
        value = "*"
    if watch.function != "lag":
        return f"{watch.function}({value}) OVER (… {frame_text(frame)})"
    if frame.first != 1 or watch.default is not None:
        value += f", {frame.first}"
    if watch.default is not None:
        value += f", {_of_alias(watch.default, alias)}"
    return f"lag({value}) OVER (…)"


def frame_text(frame: Frame) -> str:
    """A frame as SQL has it.

    >>> frame_text(Frame(None, 0, 90_000_000))
    "RANGE BETWEEN INTERVAL '90' SECOND PRECEDING AND CURRENT ROW"
    """
    if frame.first is None:
        return f"RANGE BETWEEN {interval(frame.span)} PRECEDING AND CURRENT ROW"
    begin, end = ("CURRENT ROW" if rows == 0 else f"{rows} PRECEDING" for rows in (frame.first, frame.last))
    return f"ROWS BETWEEN {begin} AND {end}"


def _of_alias(expr: Expr, alias: str) -> str:
    return to_sql(substitute(expr, lambda column: replace(column, alias=alias)))


def _range_text(ends: Range) -> str:
    low, high = ("NULL" if end is None else number_text(end) for end in ends)
    return f"({low}, {high})"


class WatchText:
    """Replaces the names of watched streams and of their columns in texts."""

    def __init__(self, watched: Sequence[StreamDef]) -> None:
        self._streams = {stream.name: stream.shown_name for stream in watched}
        watches = {watch for stream in watched for watch in stream.watches}
        self._columns: dict[str, tuple[AnyWatch, str]] = {}
        for watch in watches:
            functions: tuple[str, ...] = ("similarity", "scale", "shift", "pattern")
            if isinstance(watch, WindowFunction):
                functions = (watch.function,)
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
        if isinstance(watch, WindowFunction):
            return window_text(watch, bare) + (test or "")
        if test is None or function != "similarity":
            return call_text(watch, function, bare) + (test or "")
        return ("" if "NOT" in test else "NOT ") + call_text(watch, "similar", bare)

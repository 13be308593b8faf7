"""The user's own query with the windows of other systems rewritten as `FROM TUMBLE(…)` and `FROM HOP(…)`.

Recognised are ksqlDB (`WINDOW TUMBLING (SIZE 1 MINUTE)`, `WITHIN 5 SECONDS`, `EMIT CHANGES`), the group
windows of Flink before 1.13 (`GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)`, `TUMBLE_END`), those of eKuiper
(`GROUP BY TUMBLINGWINDOW(ss, 30)`), and functions that round times (`date_trunc` of PostgreSQL, `time_bucket`
of TimescaleDB and DuckDB), also where GROUP BY has only the name of such a call. They are not accepted: the
answer names the syntax and shows the query as Tamis reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.expressions.nodes import Column
from tamis.query.model import Catalog
from tamis.query.other_systems.clauses import (
    Item,
    arguments,
    closing,
    end_of_condition,
    end_of_sources,
    groups,
    item_after,
    items,
    outside_parentheses,
    word,
)
from tamis.query.syntax.text import Text
from tamis.query.unsupported import MATCH_RECOGNIZE


@dataclass
class TokenEdits:
    """Edits of a SELECT's tokens. Ranges are indexes of tokens, the end exclusive; they don't overlap."""

    tokens: Sequence[Token]
    replaced: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in place of tokens; an empty text removes them, and an empty range inserts before
        `start`.
        """
        self.replaced.append((start, end, text))

    def text(self, source: str) -> str:
        """`source`, of which the tokens are, from the first token to the last, after all edits."""
        parts: list[str] = []
        at = self.tokens[0].start
        for start, end, new in sorted(self.replaced):
            begin = self.tokens[start].start if start < len(self.tokens) else self.tokens[-1].end + 1
            parts += [source[at:begin].rstrip() if start == end else source[at:begin], new]
            at = self.tokens[end - 1].end + 1 if end > start else begin
            if start == end:
                parts.append(" ")
        parts.append(source[at : self.tokens[-1].end + 1])
        return " ".join("".join(parts).split())


# A longer query would hide the message; its user gets the general advice.
_LONGEST_SHOWN = 1_000
_ADVICE = "windows are written FROM TUMBLE(stream, time, INTERVAL '1' MINUTE), or FROM HOP(…)"
_UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY")
_BOUNDARIES = {"WINDOWSTART": "window_start", "WINDOWEND": "window_end"}
_GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_STARTS = (
    *_GROUP_WINDOWS,
    *(f"{name}_START" for name in _GROUP_WINDOWS),
    *("DATE_TRUNC", "DATE_BIN", "TIME_BUCKET", "TIME_BUCKET_GAPFILL"),
    *("TUMBLINGWINDOW", "HOPPINGWINDOW", "SESSIONWINDOW"),
)
# Units of eKuiper.
_SHORT_UNITS = {"DD": "DAY", "HH": "HOUR", "MI": "MINUTE", "SS": "SECOND", "MS": "MILLISECOND"}
_ENDS = tuple(f"{name}_{edge}" for name in _GROUP_WINDOWS for edge in ("END", "ROWTIME", "PROCTIME"))
_TRUNCATED = {unit: unit.upper() for unit in ("second", "minute", "hour", "day")}
# A week begins on Monday, and 1970 began on a Thursday.
_WEEK = "INTERVAL '7' DAY, INTERVAL '4' DAY"
_VARIABLE = re.compile(r"(MONTH|QUARTER|YEAR|DECADE|CENTUR|MILLENNI)", re.IGNORECASE)
_NO_LENGTH = (
    "windows have a fixed length, and months, quarters and years don't: write INTERVAL '30' DAY, for example,"
    " in FROM TUMBLE(stream, time, length), and GROUP BY window_start"
)
_INTERVAL = re.compile(r"INTERVAL '[^']*'( \w+)?", re.IGNORECASE)


def refusal(text: Text, tokens: Sequence[Token], catalog: Catalog) -> SqlError | None:
    """The mistake of a SELECT that uses the syntax of another system, with the query rewritten; None if it
    doesn't.
    """
    for token in tokens:
        if word(token) == "MATCH_RECOGNIZE":
            what, hint = MATCH_RECOGNIZE
            return text.error(what, token.start, hint)
    return _ksqldb(text, tokens, catalog) or _grouped_times(text, tokens, catalog)


def in_windows(text: Text, tokens: Sequence[Token], catalog: Catalog) -> str | None:
    """A query with aggregates and without windows, rewritten with windows of a minute over its first stream;
    None if it has another form, or calls of other systems' windows.
    """
    edits = TokenEdits(tokens)
    read = items(tokens)
    if any(_calls(tokens, 0, len(tokens))):
        return None
    if not read or not _windowed(edits, read[0], catalog, "INTERVAL '1' MINUTE"):
        return None
    _grouped_by(edits, ["window_start"])
    return _shown(edits, text)


def _ksqldb(text: Text, tokens: Sequence[Token], catalog: Catalog) -> SqlError | None:
    edits = TokenEdits(tokens)
    what, place, complete = "", 0, True
    for at, (this, following) in enumerate(pairwise(map(word, tokens))):
        match this:
            case "WINDOW" if following in ("TUMBLING", "HOPPING", "SESSION"):
                what, place = f"WINDOW {following} (…) is the syntax of ksqlDB", at
                complete &= _window_clause(edits, at, catalog)
            case "WITHIN" if any(one.end == at for one in items(tokens) or ()):
                if not what:
                    what, place = "JOIN … WITHIN is the syntax of ksqlDB", at
                complete &= _within(edits, at, catalog)
            case "EMIT" if following in ("CHANGES", "FINAL") and at == len(tokens) - 2:
                if not what:
                    what, place = f"EMIT {following} is the syntax of ksqlDB", at
                edits.replace(at, at + 2, "")
            case boundary if boundary in _BOUNDARIES:
                edits.replace(at, at + 1, _BOUNDARIES[boundary])
    if not what:
        return None
    shown = _shown(edits, text) if complete else None
    hint = f"write {shown}" if shown is not None else _ADVICE
    return text.error(what, tokens[place].start, hint)


def _window_clause(edits: TokenEdits, at: int, catalog: Catalog) -> bool:
    """Rewrite `WINDOW TUMBLING (SIZE 1 MINUTE)` at `at`; False if it can't be."""
    tokens = edits.tokens
    end = closing(tokens, at + 2) if at + 2 < len(tokens) and tokens[at + 2].text == "(" else None
    read = item_after(tokens, outside_parentheses(tokens, frozenset({"FROM"})))
    if end is None or read is None:
        return False
    lengths = {word(tokens[a]): _length(tokens, b - 2) for a, b in arguments(tokens, at + 2, end)}
    session = word(tokens[at + 1]) == "SESSION"
    size, slide = lengths.get("" if session else "SIZE"), lengths.get("ADVANCE")
    if size is None or (slide is None) == (word(tokens[at + 1]) == "HOPPING"):
        return False
    edits.replace(at, end + 1, "")
    ends = any(word(token) == "WINDOWEND" for token in tokens)
    _grouped_by(edits, ["window_start", "window_end"] if ends else ["window_start"], _BOUNDARIES)
    return _windowed(edits, read, catalog, size, slide, function="SESSION" if session else "TUMBLE")


def _within(edits: TokenEdits, at: int, catalog: Catalog) -> bool:
    """Rewrite `WITHIN 5 SECONDS` or `WITHIN (1 MINUTE, 2 MINUTES)` at `at` as a bound on times."""
    tokens = edits.tokens
    read = items(tokens)
    on = outside_parentheses(tokens, frozenset({"ON"}), at)
    joined = next((one for one in read or () if one.end == at), None)
    if read is None or joined is None or on == len(tokens):
        return False
    first = read[0]
    times = [_time_of(one.name, catalog) for one in (first, joined)]
    if tokens[at + 1].text == "(" and (end := closing(tokens, at + 1)) is not None:
        spans = [_length(tokens, b - 2) for _, b in arguments(tokens, at + 1, end)]
    else:
        spans = [_length(tokens, at + 1)] * 2
    if None in times or len(spans) != 2 or None in spans:
        return False
    edits.replace(at, on, "")
    left, right = (f"{one.alias}.{time}" for one, time in zip((first, joined), times, strict=True))
    bound = f" AND {right} BETWEEN {left} - {spans[0]} AND {left} + {spans[1]}"
    stop = end_of_condition(tokens, on)
    edits.replace(stop, stop, bound)
    return True


def _grouped_times(text: Text, tokens: Sequence[Token], catalog: Catalog) -> SqlError | None:
    """The mistake of windows in GROUP BY instead of FROM; None if there are none."""
    by = groups(tokens)
    call = None if by is None else next(_calls(tokens, *by), None) or _named_in(tokens, by)
    if by is None or call is None or (timed := _timed(tokens, call)) is None:
        return None
    time = _time_of(timed.name, catalog)
    name = word(tokens[call[0]])
    if time is None or word(tokens[call[0]]) in _ENDS:
        return None
    what = f"windows stand in FROM, not as {name.lower()}(…) in GROUP BY"
    first = text.text[tokens[call[0] + 1].start : tokens[call[1]].end].partition(",")[0]
    if not name.startswith(_GROUP_WINDOWS) and _VARIABLE.search(first):
        return text.error(what, tokens[call[0]].start, _NO_LENGTH)
    lengths = _lengths(text, tokens, call)
    if lengths is None:
        return None
    edits = TokenEdits(tokens)
    used = []
    for start, end in _calls(tokens, 0, len(tokens)):
        used.append("window_end" if word(tokens[start]) in _ENDS else "window_start")
        edits.replace(start, end + 1, used[-1])
    if "window_end" in used:
        edits.replace(by[1], by[1], ", window_end")
    size, slide = lengths[-1], lengths[0] if len(lengths) > 1 else None
    function = "SESSION" if name.startswith("SESSION") else "TUMBLE"
    windowed = _windowed(edits, timed, catalog, size, slide, function=function)
    shown = _shown(edits, text) if windowed else None
    hint = f"write {shown}" if shown is not None else _ADVICE
    return text.error(what, tokens[call[0]].start, hint)


def _timed(tokens: Sequence[Token], call: tuple[int, int]) -> Item | None:
    """The item of FROM whose time a call names; None if that isn't clear, or for a session of a join."""
    read = items(tokens)
    if not read or len(read) == 1:
        return read[0] if read else None
    named = {one.text for one, dot in pairwise(tokens[call[0] : call[1] + 1]) if dot.text == "."}
    found = [one for one in read if one.alias in named]
    return found[0] if len(found) == 1 and not word(tokens[call[0]]).startswith("SESSION") else None


def _calls(tokens: Sequence[Token], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Calls of functions that name the window of a time: the index of the name, and of the last parenthesis.
    Calls in FROM, whose first argument is a stream, are left out.
    """
    begin = outside_parentheses(tokens, frozenset({"FROM"}))
    end_of_from = outside_parentheses(tokens, frozenset({"WHERE", "GROUP BY", "HAVING"}), begin)
    for at, (token, following) in enumerate(pairwise(tokens)):
        if word(token) in (*_STARTS, *_ENDS) and following.text == "(" and start <= at < stop:
            end = closing(tokens, at + 1)
            if end is not None and not begin < at < end_of_from:
                yield at, end


def _named_in(tokens: Sequence[Token], by: tuple[int, int]) -> tuple[int, int] | None:
    """The call of SELECT whose name after AS, or place, stands in GROUP BY; None if there is none."""
    named = {token.text.lower() for token in tokens[by[0] : by[1]]}
    stop = outside_parentheses(tokens, frozenset({"FROM"}))
    # Columns are separated by commas, as arguments are; SELECT stands where a parenthesis would open.
    for place, (first, last) in enumerate(arguments(tokens, 0, stop), start=1):
        call = next(_calls(tokens, first, last), None)
        if call is not None and not named.isdisjoint((str(place), tokens[last - 1].text.lower())):
            return call
    return None


def _lengths(text: Text, tokens: Sequence[Token], call: tuple[int, int]) -> list[str] | None:
    """The slide, if there is one, and the size of the windows that a call names, each as INTERVAL."""
    given = [
        text.text[tokens[a].start : tokens[b - 1].end + 1] for a, b in arguments(tokens, call[0] + 1, call[1])
    ]
    if word(tokens[call[0]]) == "DATE_TRUNC":
        shown = given[0].strip("'").lower() if given else ""
        if shown == "week":
            return [_WEEK]
        unit = _TRUNCATED.get(shown)
        return None if unit is None else [f"INTERVAL '1' {unit}"]
    name = word(tokens[call[0]])
    if name.endswith("WINDOW"):
        return _of_ekuiper(name, given)
    if name in ("TIME_BUCKET", "TIME_BUCKET_GAPFILL", "DATE_BIN"):
        given = [f"INTERVAL {one}" if one.startswith("'") else one for one in given]
    found = [one for one in given if _INTERVAL.fullmatch(one)]
    expected = 2 if word(tokens[call[0]]).startswith("HOP") else 1
    return found if len(found) == expected else None


def _of_ekuiper(name: str, given: Sequence[str]) -> list[str] | None:
    """The lengths that a window of eKuiper names, each as INTERVAL: the slide, if there is one, and the size;
    of sessions only the gap. None for arguments of another number or form. `given`: the arguments, of which
    the first one is the unit.
    """
    unit = _SHORT_UNITS.get(given[0].upper()) if given else None
    numbers = [f"INTERVAL '{one}' {unit}" for one in given[1:] if one.isdecimal()]
    if unit is None or len(numbers) != (1 if name == "TUMBLINGWINDOW" else 2):
        return None
    return numbers[1:] if name == "SESSIONWINDOW" else numbers[::-1]


def _windowed(
    edits: TokenEdits,
    read: Item,
    catalog: Catalog,
    size: str,
    slide: str | None = None,
    *,
    function: str = "TUMBLE",
) -> bool:
    """Put the stream of FROM into windows of a function, HOP if there is a slide; False if the stream has no
    event time.
    """
    time = _time_of(read.name, catalog)
    if time is None:
        return False
    shown = edits.tokens[read.at].text
    name = f'"{shown}"' if edits.tokens[read.at].token_type is TokenType.IDENTIFIER else shown
    call = f"{function}({name}, {time}, {size})" if slide is None else f"HOP({name}, {time}, {slide}, {size})"
    edits.replace(read.at, read.at + 1, call)
    return True


def _grouped_by(
    edits: TokenEdits, wanted: Sequence[str], synonyms: Sequence[str] | dict[str, str] = ()
) -> None:
    """Add columns of windows to GROUP BY, or a GROUP BY, unless it has one of them."""
    tokens = edits.tokens
    by = groups(tokens)
    if by is None:
        at = end_of_sources(tokens)
        edits.replace(at, at, f" GROUP BY {', '.join(wanted)}")
    elif not any(word(token) in ("WINDOW_START", "WINDOW_END", *synonyms) for token in tokens[by[0] : by[1]]):
        edits.replace(by[1], by[1], f", {', '.join(wanted)}")


def _length(tokens: Sequence[Token], at: int) -> str | None:
    """ksqlDB's `5 SECONDS` at `at` as an INTERVAL."""
    if not 0 <= at < len(tokens) - 1 or tokens[at].token_type is not TokenType.NUMBER:
        return None
    unit = word(tokens[at + 1]).removesuffix("S")
    return f"INTERVAL '{tokens[at].text}' {unit}" if unit in _UNITS else None


def _time_of(name: str, catalog: Catalog) -> str | None:
    """The event time of a stream, raw or derived from one; None if it has none."""
    if name in catalog.streams:
        return catalog.streams[name].time
    derived = catalog.derived.get(name)
    if derived is None or derived.inlined:
        return None
    time = _time_of(derived.query.sources[0].stream, catalog)
    for output in derived.query.select:
        if isinstance(output.expr, Column) and output.expr.name == time:
            return output.name
    return None


def _shown(edits: TokenEdits, text: Text) -> str | None:
    """The rewritten query; None if it is too long to be read in a message."""
    shown = edits.text(text.text)
    return shown if len(shown) <= _LONGEST_SHOWN else None

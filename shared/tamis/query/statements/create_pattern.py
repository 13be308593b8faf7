"""CREATE PATTERN: values in the statement, or those of a CSV file or of a folder of CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from sqlglot.tokenizer_core import TokenType

from tamis.declarations.definitions import PatternDef
from tamis.declarations.watches import MAX_GAP, NamedPattern
from tamis.errors import InputError, RefusedError
from tamis.query.patterns.files import LONGEST_STEM, MOST_VALUES, FileOptions, read_patterns
from tamis.query.patterns.watch_text import MOST_CHARACTERS, inline_text
from tamis.query.statements import options
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput
from tamis.query.syntax.cursor import Cursor, Name
from tamis.similarity.normal_form import moments

_EXAMPLE = "write CREATE PATTERN name FROM 'file.csv', or CREATE PATTERN name VALUES (0, 1, 4, 1, 0)"
_NEEDED = "a pattern needs at least two values, and not all of them equal"
_NUMBER = "write a number such as 0.5, -2 or 1e3"
ANY = "any"


def parse_pattern(given: StatementInput) -> PatternDef | None:
    """CREATE PATTERN from its name to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    before = len(context.errors)
    name = given.plain_name("a pattern", _EXAMPLE)
    if name.text == ANY:
        hint = "choose another name: ANY stands for all patterns in similar(…)"
        context.error("a pattern can't have the name 'any'", name.offset, hint)
    place = cursor.offset
    notices: tuple[str, ...] = ()
    if cursor.word("VALUES"):
        listed = _values(given, name)
        values = given.options(options.PATTERN)
        cursor.finish(END_STATEMENT)
        max_gap = values.get("max_gap", MAX_GAP)
        members = tuple(NamedPattern(one, numbers, max_gap) for one, numbers in listed)
    else:
        if not cursor.word("FROM"):
            raise cursor.unexpected("FROM or VALUES", _EXAMPLE)
        place = cursor.offset
        path = _path(cursor)
        values = given.options(options.PATTERN_FILE)
        cursor.finish(END_STATEMENT)
        if "step" in values and "time" not in values:
            hint = "add time = 'column', or leave step out: the values are at a fixed step without times"
            context.error("the option 'step' is only for files with times", place, hint)
        if len(context.errors) > before:
            return None
        wanted = FileOptions(**{"max_gap": MAX_GAP, **values})
        try:
            members, notices = read_patterns(name.text, path, wanted, context.catalog.file_access)
        except (InputError, RefusedError) as error:
            where = f"{error.where}: " if error.where else ""
            context.error(f"{where}{error.what}", place, error.hint or _EXAMPLE)
            return None
    if len(context.errors) > before or not _usable(given, members, place):
        return None
    sql = inline_text(name.text, members)
    if len(sql) > MOST_CHARACTERS:
        what = f"the values take {len(sql)} characters of SQL; at most {MOST_CHARACTERS} are allowed"
        hint = "write fewer digits, or several CREATE PATTERN, each with a part of the patterns"
        context.error(what, place, hint)
        return None
    return PatternDef(name.text, members, given.functions, sql, given.position(name), notices)


def _path(cursor: Cursor) -> str:
    token = cursor.current
    if token is None or token.token_type != TokenType.STRING:
        raise cursor.unexpected("the name of a file or folder", _EXAMPLE)
    cursor.take()
    return token.text


def _values(given: StatementInput, name: Name) -> list[tuple[str, tuple[float, ...]]]:
    """The patterns after VALUES: one list of numbers, or a list of pairs ('name', (…)) of a folder."""
    context, cursor = given.context, given.cursor
    found: dict[str, tuple[float, ...]] = {}
    while True:
        place = cursor.offset
        group = cursor.group("value, …", _EXAMPLE)
        if group.current is not None and group.current.token_type == TokenType.STRING:
            member = _member(group)
            numbers = _numbers(group.group("value, …", "write ('name', (0, 1, 4, 1, 0))"))
            group.finish("write ('name', (0, 1, 4, 1, 0))")
            full = f"{name.text}/{member}"
        elif found:
            raise context.text.error(
                "expected a pair ('name', (value, …))", place, "give each of several patterns a name"
            )
        else:
            full, numbers = name.text, _numbers(group)
        if full in found:
            context.error(f"two patterns have the name '{full}'", place, "give each a name of its own")
        found[full] = numbers
        if full == name.text or not cursor.symbol(","):
            return list(found.items())


def _member(group: Cursor) -> str:
    token = group.take()
    assert token is not None
    if not 0 < len(token.text) <= LONGEST_STEM or not token.text.isprintable():
        hint = f"use 1 to {LONGEST_STEM} printable characters"
        raise group.text.error("this can't be the name of a pattern", token.start, hint)
    if not group.symbol(","):
        raise group.unexpected("a comma", "write ('name', (0, 1, 4, 1, 0))")
    return token.text


def _numbers(group: Cursor) -> tuple[float, ...]:
    """The numbers of a list, which takes all tokens of the group."""
    numbers: list[float] = []
    while True:
        start = group.offset
        negative = group.symbol("-")
        token = group.current
        if token is not None and group.peek() == "NULL":
            hint = "a pattern has no gaps: fill the value in, or leave out what lies before or behind the gap"
            raise group.text.error("the value is missing", token.start, hint)
        if token is None or token.token_type != TokenType.NUMBER:
            raise group.unexpected("a number", _NUMBER)
        group.take()
        number = float(token.text)
        if not isfinite(number):
            raise group.text.error("this number doesn't fit into a DOUBLE", start, _NUMBER)
        numbers.append(-number if negative else number)
        if len(numbers) > MOST_VALUES:
            what = f"a pattern can have at most {MOST_VALUES} values"
            raise group.text.error(what, start, "take a longer step, or a shorter part of the recording")
        if not group.symbol(","):
            group.finish("write a comma between two values")
            return tuple(numbers)


def _usable(given: StatementInput, members: Sequence[NamedPattern], place: int) -> bool:
    """Tell if all patterns have a normal form; the first one that has none is reported."""
    for one in members:
        if len(one.values) < 2:
            what = f"pattern {one.name} has {'only 1 value' if one.values else 'no values'}"
            given.context.error(what, place, _NEEDED)
            return False
        try:
            moments(f"pattern {one.name}", one.values)
        except InputError as error:
            given.context.error(f"{error.where}: {error.what}", place, error.hint or _NEEDED)
            return False
    return True

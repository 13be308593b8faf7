"""The statements: heads read token by token, SELECTs and expressions handed on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlglot.tokenizer_core import TokenType

from tamis.errors import Position, SqlError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.query import options
from tamis.query.calls import BUILTINS
from tamis.query.columns import read_columns, read_type
from tamis.query.context import Context, Name, suggest
from tamis.query.cursor import Cursor
from tamis.query.limits import check_limits
from tamis.query.model import (
    AlertDef,
    AlertOptions,
    ColumnDef,
    DerivedDef,
    Drop,
    Explain,
    FunctionDef,
    Query,
    SetPaused,
    Show,
    Statement,
    StreamDef,
    TableDef,
)
from tamis.query.operators import logic
from tamis.query.python_functions import read_python
from tamis.query.refusals import function as refused_function
from tamis.query.resolve import resolve
from tamis.query.syntax import BareNames, read_expression, read_select

# What Kafka allows in the name of a topic, and every label, path and file that bears the name.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_STREAM = "write CREATE STREAM name (column TYPE, …, WATERMARK FOR column AS column - INTERVAL '5' SECOND)"
_ALERT = "write CREATE ALERT name AS SELECT …"
_FUNCTION = "write CREATE FUNCTION name(parameter TYPE, …) RETURNS TYPE AS expression"
_STATEMENTS = ("CREATE", "DROP", "PAUSE", "RESUME", "SHOW", "EXPLAIN")
_KINDS = ("STREAM", "ALERT", "FUNCTION", "TABLE", "PATTERN")
_SHOWN = ("ALERTS", "STREAMS")
_LATER = {"PATTERN": "similarity queries"}
_TABLE = "write CREATE TABLE name (column TYPE, …) WITH (path = 'file.csv')"


def _ended(column: ColumnDef, until: int) -> ColumnDef:
    """The event time of a finite stream, with its end as a CHECK."""
    own = Column("", column.name, column.type)
    end = Call("<=", (own, Literal(until, Type.TIMESTAMP)), Type.BOOLEAN)
    return replace(column, check=end if column.check is None else logic("and", [column.check, end]))


class StatementReader:
    """Reads one statement: `read` returns it, or None where mistakes were reported."""

    def __init__(self, context: Context, cursor: Cursor, sql: str) -> None:
        self.context = context
        self.cursor = cursor
        self.sql = sql
        self.start = cursor.offset

    def position(self, name: Name | None = None) -> Position:
        """Where a name stands, or the statement begins."""
        return self.context.text.position(self.start if name is None else name.offset)

    @property
    def functions(self) -> tuple[str, ...]:
        """What the statement called so far."""
        return tuple(sorted(self.context.used_functions))

    def read(self) -> Statement | None:
        """The statement. Raises `SqlError` for a mistake behind which nothing more can be read."""
        self.context.used_functions.clear()
        check_limits(self.cursor)
        for word, method in self._methods().items():
            if self.cursor.word(word):
                return method()
        word = self.cursor.peek()
        if word in ("SELECT", "WITH"):
            hint = "write CREATE ALERT name AS SELECT …, or EXPLAIN SELECT …"
            raise self.context.text.error("a SELECT alone is no statement", self.start, hint)
        raise self.cursor.unexpected("a statement", suggest(word, _STATEMENTS))

    def _methods(self) -> dict[str, Callable[[], Statement | None]]:
        return {
            "CREATE": self._create,
            "DROP": self._drop,
            "PAUSE": lambda: self._paused(True),
            "RESUME": lambda: self._paused(False),
            "SHOW": self._show,
            "EXPLAIN": self._explain,
        }

    def _create(self) -> Statement | None:
        cursor = self.cursor
        replace_at = cursor.offset
        replace = cursor.word("OR", "REPLACE")
        kind = cursor.peek()
        if replace and kind in _KINDS and kind != "ALERT":
            hint = f"write DROP {kind} name; CREATE {kind} …"
            self.context.error(f"OR REPLACE is for alerts, not for a {kind.lower()}", replace_at, hint)
        if kind not in _KINDS:
            raise cursor.unexpected("STREAM, ALERT or FUNCTION", suggest(kind, _KINDS))
        cursor.take()
        if cursor.peek() == "IF" and cursor.peek(1) == "NOT":
            raise cursor.unexpected(
                "a name", f"leave IF NOT EXISTS out: {kind.lower()}s have one definition each"
            )
        if kind == "STREAM":
            return self._stream()
        if kind == "ALERT":
            return self._alert(replace)
        if kind == "FUNCTION":
            return self._function()
        if kind == "TABLE":
            return self._table()
        self._pattern()
        return None

    def _named(self, what: str, hint: str) -> Name:
        """The name of a stream or alert; plain, since topics and metrics bear it."""
        name = self.cursor.name(what, hint)
        if not _PLAIN.fullmatch(name.text):
            hint = "use letters, digits and _ only: topics and metrics bear it"
            self.context.error(f"{what} can't be '{name.text}'", name.offset, hint)
        return name

    def _stream(self) -> Statement | None:
        name = self._named("the name of a stream", _STREAM)
        if self.cursor.word("AS"):
            return self._derived(name)
        before = len(self.context.errors)
        group = self.cursor.group("columns", _STREAM)
        columns, watermark = read_columns(self.context, group)
        given = self._options(options.STREAM)
        self.cursor.finish("end the statement with a semicolon")
        if len(self.context.errors) == before:
            self._check_end(name, given, watermark is not None)
        if len(self.context.errors) > before:
            return None
        time, delay = watermark or (None, 0)
        if "until" in given:
            columns = [_ended(c, given["until"]) if c.name == time else c for c in columns]
        return StreamDef(
            name.text,
            tuple(columns),
            time,
            delay,
            **given,
            functions=self.functions,
            sql=self.sql,
            position=self.position(name),
        )

    def _check_end(self, name: Name, given: Mapping[str, Any], timed: bool) -> None:
        """A finite stream has event time, and says when it ends; another one doesn't."""
        finite = given.get("finite", False)
        if "until" in given and not finite:
            self.context.error(
                "until is for finite streams", name.offset, "leave until out, or add finite = true"
            )
        if finite and "until" not in given:
            hint = "add until = '2026-01-31T12:00:00Z', the last event time that it has"
            self.context.error("a finite stream says when it ends", name.offset, hint)
        if finite and not timed:
            hint = "add WATERMARK FOR column AS column, or write its rows to a file and CREATE TABLE"
            self.context.error("a finite stream has event time", name.offset, hint)

    def _derived(self, name: Name) -> DerivedDef | None:
        query = self._query()
        if query is None:
            return None
        if query.members:
            hint = "write the UNION in each alert that reads it"
            raise self.context.text.error("streams made by a UNION aren't executed yet", name.offset, hint)
        if query.window is not None:
            hint = f"write {query.sources[0].stream} here, and its windows in the alerts that read it"
            raise self.context.text.error("streams of windows aren't executed yet", name.offset, hint)
        if query.distinct:
            hint = "write DISTINCT in the alert that reads it"
            raise self.context.text.error("streams of distinct rows aren't executed yet", name.offset, hint)
        if query.grouping is not None:
            hint = "write the aggregates in an alert: their rows change, and can't be read as tuples"
            raise self.context.text.error("streams of aggregates aren't executed yet", name.offset, hint)
        if any(output.name == "_" for output in query.select):
            hint = "choose another name: messages carry what Tamis adds under _"
            raise self.context.text.error("a column of a stream can't be called _", name.offset, hint)
        return DerivedDef(name.text, query, self.functions, self.sql, self.position(name))

    def _alert(self, replace: bool) -> AlertDef | None:
        before = len(self.context.errors)
        name = self._named("the name of an alert", _ALERT)
        given = self._options(options.ALERT)
        self.cursor.expect_word("AS", _ALERT)
        query = self._query()
        if query is None or len(self.context.errors) > before:
            return None
        if "for" in given:
            given["for_"] = given.pop("for")
        return AlertDef(
            name.text, query, AlertOptions(**given), replace, self.functions, self.sql, self.position(name)
        )

    def _options(self, known: Mapping[str, options.Option]) -> dict[str, Any]:
        if not self.cursor.word("WITH"):
            return {}
        return options.read_options(
            self.context, self.cursor.group("name = value, …", "write WITH (name = value, …)"), known
        )

    def _query(self) -> Query | None:
        """The SELECT that is left; None where mistakes were reported."""
        offset, before = self.cursor.offset, len(self.context.errors)
        node = read_select(self.context, self.cursor)
        query = resolve(self.context, node, offset)
        return query if len(self.context.errors) == before else None

    def _function(self) -> FunctionDef | None:
        cursor = self.cursor
        before = len(self.context.errors)
        name = cursor.name("the name of a function", _FUNCTION)
        if name.text in BUILTINS or refused_function(name.text) is not None:
            self.context.error(f"'{name.text}' is a function of SQL", name.offset, "choose another name")
        parameters: dict[str, Type] = {}
        group = cursor.group("parameter TYPE, …", _FUNCTION)
        complete = True
        for item in group.items() if group.tokens else []:
            try:
                parameter = item.name("the name of a parameter", _FUNCTION)
                kind = read_type(item)
                item.finish("write a comma between two parameters")
            except SqlError as error:
                self.context.errors.append(error)
                complete = False
                continue
            if parameter.text in parameters:
                hint = "give each parameter a name of its own"
                self.context.error(f"the parameter '{parameter.text}' is given twice", parameter.offset, hint)
            parameters[parameter.text] = kind
        cursor.expect_word("RETURNS", _FUNCTION)
        returns_at = cursor.offset
        returns = read_type(cursor)
        body: Expr | None
        if cursor.word("LANGUAGE"):
            body = read_python(self.context, cursor, parameters)
            if returns is not Type.DOUBLE:
                self.context.error("a function of Python gives a DOUBLE", returns_at, "write RETURNS DOUBLE")
        else:
            cursor.expect_word("AS", _FUNCTION)
            body = read_expression(
                self.context, cursor, BareNames("parameter", parameters, complete), returns=returns
            )
        if body is None or len(self.context.errors) > before:
            return None
        return FunctionDef(
            name.text, tuple(parameters.items()), returns, body, self.functions, self.sql, self.position(name)
        )

    def _table(self) -> TableDef | None:
        before = len(self.context.errors)
        name = self._named("the name of a table", _TABLE)
        columns, watermark = read_columns(self.context, self.cursor.group("columns", _TABLE))
        given = self._options(options.TABLE)
        self.cursor.finish("end the statement with a semicolon")
        if watermark is not None:
            hint = "leave WATERMARK out, or write CREATE STREAM"
            self.context.error("a table has no event time: its rows don't change", name.offset, hint)
        if len(self.context.errors) == before and "path" not in given:
            self.context.error("a table says where its rows are", name.offset, _TABLE)
        if len(self.context.errors) > before:
            return None
        return TableDef(
            name.text, tuple(columns), given["path"], self.functions, self.sql, self.position(name)
        )

    def _pattern(self) -> None:
        example = "write CREATE PATTERN name FROM 'file.csv'"
        name = self._named("the name of a pattern", example)
        self.cursor.expect_word("FROM", example)
        token = self.cursor.take()
        if token is None or token.token_type != TokenType.STRING:
            self.cursor.at -= token is not None
            raise self.cursor.unexpected("the name of a file", example)
        self.cursor.finish("end the statement with a semicolon")
        what = f"{_LATER['PATTERN']}, CREATE PATTERN {name.text}, aren't executed yet"
        self.context.error(what, self.start, "compare single values with a threshold")

    def _drop(self) -> Drop | None:
        cursor = self.cursor
        kind = cursor.peek()
        if kind not in _KINDS:
            raise cursor.unexpected("ALERT, STREAM or FUNCTION", suggest(kind, _KINDS))
        cursor.take()
        if cursor.peek() == "IF" and cursor.peek(1) == "EXISTS":
            raise cursor.unexpected("a name", "leave IF EXISTS out")
        name = cursor.name(f"the name of the {kind.lower()}", f"write DROP {kind} name")
        cursor.finish(f"write one DROP {kind} for each name, without CASCADE")
        broken = {
            "ALERT": self.context.broken_alerts,
            "STREAM": self.context.broken_streams,
            "TABLE": self.context.broken_streams,
            "FUNCTION": self.context.broken_functions,
        }.get(kind, set())
        if kind in _LATER and name.text not in broken:
            what = f"{_LATER[kind]}, DROP {kind} {name.text}, aren't executed yet"
            self.context.error(what, self.start, "leave the statement out: there are none")
            return None
        if name.text in broken:
            broken.discard(name.text)
            return None
        return Drop(kind.lower(), name.text, self.position(name))

    def _paused(self, paused: bool) -> SetPaused | None:
        word = "PAUSE" if paused else "RESUME"
        self.cursor.expect_word("ALERT", f"write {word} ALERT name")
        name = self.cursor.name("the name of an alert", f"write {word} ALERT name")
        self.cursor.finish("end the statement with a semicolon")
        if name.text in self.context.broken_alerts:
            return None
        return SetPaused(name.text, paused, self.position(name))

    def _show(self) -> Show | None:
        kind = self.cursor.peek()
        if kind not in _SHOWN and kind.removesuffix("S") not in _KINDS:
            raise self.cursor.unexpected("ALERTS or STREAMS", suggest(kind, _SHOWN))
        self.cursor.take()
        self.cursor.finish("end the statement with a semicolon")
        if kind not in _SHOWN:
            what = f"SHOW {kind} isn't executed yet"
            self.context.error(what, self.start, "write SHOW ALERTS or SHOW STREAMS")
            return None
        return Show(kind.lower(), self.position())

    def _explain(self) -> Explain | None:
        if self.cursor.peek() in ("SELECT", "WITH"):
            sql = self.context.text.text[self.cursor.offset : self.cursor.end].rstrip()
            query = self._query()
            if query is None:
                return None
            called = self.context.unnamed(self.position())
            alert = AlertDef(called, query, functions=self.functions, sql=sql, position=self.position())
            return Explain(alert, self.position())
        name = self.cursor.name("the name of a query, or SELECT", "write EXPLAIN name, or EXPLAIN SELECT …")
        self.cursor.finish("write EXPLAIN name, or EXPLAIN SELECT …")
        if name.text in self.context.broken_alerts | self.context.broken_streams:
            return None
        return Explain(name.text, self.position(name))

"""A SELECT over the newest readings of one stream: read as that of a query, and its rows.

The registry sends the readings; conditions and columns are evaluated here, by the code that edges use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from sqlglot import exp

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.errors import SqlError, SqlErrors
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Expr, Type, columns
from tamis.expressions.vectors import Value, Vector
from tamis.query.catalog import apply
from tamis.query.context import Context
from tamis.query.functions import SIMILARITY_FUNCTIONS
from tamis.query.model import Catalog, Output
from tamis.query.parse import parse
from tamis.query.selects.set_operations import resolve_query
from tamis.query.statements.statement_input import statement_cursor
from tamis.query.syntax.cursor import Cursor, name_of
from tamis.query.syntax.dialect import NoReading, span
from tamis.query.syntax.limits import check_limits
from tamis.query.syntax.parser import select_tree
from tamis.query.syntax.text import Piece, Text
from tamis.query.unsupported import AGGREGATES, WINDOW_FUNCTIONS
from tamis.recordings.json_values import convert
from tamis.web.registry_client import RegistryClient

USUAL_LIMIT = 20
# The registry sends no more records in one answer.
MOST_READINGS = 500

_HINT = (
    "a SELECT of its own shows the newest readings of one stream: SELECT … FROM stream [WHERE condition]"
    " [LIMIT n]; for anything else, write CREATE ALERT or EXPLAIN before it, or use `tamis run`"
)
_HINTS = {
    "order": "leave it out: the newest reading comes first",
    "offset": "leave it out: LIMIT shows more readings",
}
_NAMES = {
    "joins": "a join",
    "with_": "WITH",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "distinct": "DISTINCT",
    "windows": "WINDOW",
}
_SUPPORTED = ("expressions", "from_", "where", "limit")

_ENVELOPE = "_"


@dataclass(frozen=True)
class ReadingsQuery:
    """The resolved SELECT: its columns, and the conditions that are joined by AND, over `Column(alias, name)`
    of one stream.
    """

    stream: StreamDef
    alias: str
    select: tuple[Output, ...]
    conditions: tuple[Expr, ...]
    limit: int

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the stream that the SELECT reads."""
        read = (*(one.expr for one in self.select), *self.conditions)
        return frozenset(column.name for expr in read for column in columns(expr))


def statement_of(text: Text, piece: Piece) -> Cursor:
    """The tokens of one statement. Raises `SqlErrors` if it has none."""
    context = Context(text, Catalog())
    cursor = statement_cursor(context, piece)
    if context.errors:
        raise SqlErrors(context.errors)
    return cursor


def is_select(cursor: Cursor) -> bool:
    """True for a SELECT, also in parentheses or behind WITH."""
    return cursor.peek() in ("SELECT", "WITH") or (cursor.current is not None and cursor.current.text == "(")


def readings_query(cursor: Cursor, names: dict[str, Any]) -> ReadingsQuery:
    """The SELECT at the cursor; `names` is the registry's document of streams and functions.

    Raises `SqlError` or `SqlErrors` for mistakes, and for what isn't supported here, with positions.
    """
    context = Context(cursor.text, _catalog(names))
    check_limits(cursor)
    offset, context.select_tokens = cursor.offset, cursor.tokens
    tree = select_tree(cursor, context.errors)
    if context.errors:
        raise SqlErrors(context.errors)
    tables = {one["name"] for one in names["streams"] if one["kind"] == "table"}
    refusal = _refusal(cursor.text, tree, offset, tables)
    if refusal is not None:
        raise refusal
    limit = _limit(cursor.text, tree.args.get("limit"))
    tree.set("limit", None)
    query = resolve_query(context, tree, offset)
    if query is None or context.errors:
        raise SqlErrors(context.errors)
    (source,) = query.sources
    return ReadingsQuery(
        context.catalog.streams[source.stream],
        source.alias,
        query.select,
        tuple(one.expr for one in query.conjuncts),
        limit,
    )


def _catalog(names: dict[str, Any]) -> Catalog:
    """The streams and functions of the registry."""
    catalog = Catalog()
    for one in names["streams"]:
        if one["kind"] == "table":
            continue
        known = tuple(ColumnDef(c["name"], Type[c["type"]], c["key"]) for c in one["columns"])
        catalog.streams[one["name"]] = StreamDef(one["name"], known, one["time"], 0)
    for function in names["functions"]:
        try:
            # A registry of an older release doesn't send the definitions.
            for statement in parse(function.get("sql", ""), catalog):
                apply(catalog, statement)
        except SqlErrors:
            continue  # of a newer release, in a syntax that isn't known here: a call of it is a mistake
    return catalog


def _refusal(text: Text, tree: exp.Expr, offset: int, tables: Iterable[str]) -> SqlError | None:
    """The first part of a SELECT that is not supported here; None if there is none."""
    if not isinstance(tree, exp.Select):
        return text.error("only a plain SELECT shows readings", offset, _HINT)
    for clause, value in tree.args.items():
        if value and clause not in _SUPPORTED:
            node = value[0] if isinstance(value, list) else value
            at = span(node)[0] if isinstance(node, exp.Expr) else offset
            what = f"{_NAMES.get(clause, clause.strip('_').upper())} is not supported here"
            return text.error(what, at, _HINTS.get(clause, _HINT))
    source = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return text.error(
            "FROM needs the name of one stream", offset if source is None else span(source)[0], _HINT
        )
    name = name_of(source.this).text
    if name in tables:
        hint = "its rows are in the file that its path names"
        return text.error(f"'{name}' is a table, and no stream with readings", span(source)[0], hint)
    for node in tree.find_all(exp.Query, exp.Exists, exp.Window, NoReading, exp.Anonymous):
        if isinstance(node, exp.Anonymous):
            called = str(node.name).lower()
            if called not in AGGREGATES | WINDOW_FUNCTIONS | set(SIMILARITY_FUNCTIONS):
                continue
            return text.error(f"{called}(…) is not supported here", span(node)[0], _HINT)
        if node is not tree:
            kind = "a window function" if isinstance(node, exp.Window) else "a subquery"
            kind = "NO READING" if isinstance(node, NoReading) else kind
            return text.error(f"{kind} is not supported here", span(node)[0], _HINT)
    return None


def _limit(text: Text, node: exp.Expr | None) -> int:
    if node is None:
        return USUAL_LIMIT
    value = node.args.get("expression") if isinstance(node, exp.Limit) else None
    if isinstance(value, exp.Literal) and value.name.isdecimal() and 1 <= int(value.name) <= MOST_READINGS:
        return int(value.name)
    raise text.error(
        f"LIMIT needs a whole number from 1 to {MOST_READINGS}",
        span(node)[0],
        "this many of the newest readings are looked at",
    )


@dataclass(frozen=True)
class NewestReadings:
    """Rows, the newest first. `complete`: no other reading in the topics fits. `notices`: facts that a reader
    of the rows needs.
    """

    stream: str
    columns: tuple[tuple[str, Type], ...]
    rows: list[tuple[Value, ...]]
    complete: bool
    notices: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The JSON object of `tamis sql --json`; times and intervals are microseconds."""
        return {
            "statement": "select",
            "stream": self.stream,
            "columns": [name for name, _ in self.columns],
            "types": [kind.value for _, kind in self.columns],
            "rows": self.rows,
            "complete": self.complete,
            "notices": self.notices,
        }


def newest_readings(registry: RegistryClient, query: ReadingsQuery) -> NewestReadings:
    """Run a SELECT. Raises TamisError if the registry doesn't send the readings."""
    name = query.stream.name
    path = f"/v1/streams/{quote(name, safe='')}/readings"
    answer = registry.request("GET", path, query={"limit": str(MOST_READINGS)})
    readings, notices = _readings(answer["records"], query)
    count = len(readings)
    columns: dict[tuple[str, str], Vector] = {}
    for column in query.stream.columns:
        values = [one.get(column.name) for one in readings]
        columns[query.alias, column.name], unusable = convert(column.name, values, column.type, "us")
        if unusable:
            notices.append(f"{len(unusable)} values of {column.name} are no {column.type} and shown as NULL")
    fits = np.ones(count, np.bool_)
    for condition in query.conditions:
        fits &= holds(condition, columns, count)
    found = np.flatnonzero(fits)
    shown = found[: query.limit]
    cells = [evaluate(one.expr, columns, count).take(shown).to_list() for one in query.select]
    # An older registry has no `not_shown`.
    hidden, unreadable = answer.get("not_shown", ()), answer["unreadable"]
    complete = bool(answer["complete"]) and len(shown) == len(found) and not (hidden or unreadable)
    if hidden:
        notices.append(f"{_counted(len(hidden), 'reading')} can't be shown: {hidden[0]['why']}")
    if unreadable:
        notices.append(f"{_counted(unreadable, 'record')} in the topics of {name} can't be read")
    if not answer["records"]:
        notices.append(f"the topics of {name} have no readings: edges send only those that queries need")
    elif not answer["complete"] and len(found) < query.limit:
        notices.append(f"of {name}, only the newest {len(answer['records'])} in its topics were searched")
    return NewestReadings(
        name,
        tuple((one.name, one.expr.type) for one in query.select),
        list(zip(*cells, strict=True)),
        complete,
        tuple(notices),
    )


def _readings(
    records: Sequence[Mapping[str, Any]], query: ReadingsQuery
) -> tuple[list[dict[str, Any]], list[str]]:
    """The readings, the newest first, each of them once, and notices about columns and topics that lack.

    Topics of a stream have copies of the same reading, each with the columns that its readers need. Of these
    topics, those with the most of the columns that the SELECT reads are used.
    """
    known = query.stream
    wanted = query.columns | ({known.time} if known.time is not None else set())
    carried: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        carried[record["topic"]] |= record["value"].keys() - {_ENVELOPE}
    best = max((wanted & has for has in carried.values()), key=len, default=wanted)
    used = {topic for topic, has in carried.items() if wanted & has == best}
    kept: Counter[tuple[str, bytes]] = Counter()
    copies: Counter[tuple[str, str, bytes]] = Counter()
    readings: list[dict[str, Any]] = []
    for record in records:
        if record["topic"] not in used:
            continue
        reading = {name: record["value"].get(name) for name in sorted(best)}
        shard, text = str(record["value"].get(_ENVELOPE, {}).get("shard")), orjson.dumps(reading)
        copies[record["topic"], shard, text] += 1
        # Equal readings that are in one topic are several readings.
        if copies[record["topic"], shard, text] > kept[shard, text]:
            kept[shard, text] += 1
            readings.append(reading)
    notices = []
    if missing := sorted(wanted - best):
        what = "is" if len(missing) == 1 else "are"
        why = "no query in service reads it" if len(missing) == 1 else "no query in service reads them"
        why += " together with the others" if len(carried) > 1 else ""
        notices.append(f"{', '.join(missing)} {what} NULL: {why}, so edges don't send {_them(missing)}")
    if left := sorted(carried.keys() - used):
        notices.append(f"readings in {', '.join(left)} are left out: they lack columns of this SELECT")
    return readings, notices


def _counted(count: int, what: str) -> str:
    """The count with its noun."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _them(names: Sequence[str]) -> str:
    """The pronoun for one name or several."""
    return "it" if len(names) == 1 else "them"

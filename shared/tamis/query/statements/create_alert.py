"""CREATE [OR REPLACE] ALERT: a name, options, and the query."""

from __future__ import annotations

from typing import assert_never

from tamis.declarations.backfill import LONGEST, From
from tamis.query.model import (
    AlertDef,
    AlertOptions,
    ApplicationTimeSelect,
    ApplicationTimeUnion,
    Catalog,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    TimelessGroupBy,
    TimelessSelect,
    TimelessUnion,
    WindowGroupBy,
)
from tamis.query.statements import options
from tamis.query.statements.statement_input import StatementInput

_EXAMPLE = "write CREATE ALERT name AS SELECT …"


def parse_alert(given: StatementInput, replace: bool) -> AlertDef | None:
    """CREATE ALERT from its name to the end; None if a mistake was reported."""
    context = given.context
    before = len(context.errors)
    name = given.plain_name("an alert", _EXAMPLE)
    values = given.options(options.ALERT)
    given.cursor.expect_word("AS", _EXAMPLE)
    query = given.query()
    if query is None or len(context.errors) > before:
        return None
    if "within" in values and (told := _needs_every_tuple(query)) is not None:
        context.error(f"within: {told[0]}", name.offset, told[1])
        return None
    if "from" in values and (told := _no_history(query, values["from"], context.catalog)) is not None:
        context.error(f"from: {told[0]}", name.offset, told[1])
        return None
    for word in ("for", "from"):
        if word in values:
            values[f"{word}_"] = values.pop(word)
    return AlertDef(
        name.text,
        query,
        AlertOptions(**values),
        replace,
        given.functions,
        given.sql,
        given.position(name),
    )


def _no_history(query: Query, since: From, catalog: Catalog) -> tuple[str, str] | None:
    """The reason why a query can't read readings from before it was created, and what to write instead; None
    if it can.
    """
    leave = "leave from out"
    if query.watched:
        called = "similar() and window functions compare readings with earlier ones"
        return f"{called}, and edges keep these for new readings only", leave
    names = dict.fromkeys(source.stream for source in query.sources)
    streams = [catalog.streams[name] for name in names if name in catalog.streams]
    long = next((stream.name for stream in streams if len(stream.name) > LONGEST), None)
    if long is not None:
        return f"the name of stream {long} has more than {LONGEST} characters", "give it a shorter name"
    timeless = next((stream.name for stream in streams if stream.time is None), None)
    if timeless is not None and since != "earliest":
        return (
            f"stream {timeless} has no event time",
            "write from = 'earliest', or declare WATERMARK FOR its time",
        )
    return None


def _needs_every_tuple(query: Query) -> tuple[str, str] | None:
    """The reason why `within` can't choose among the rows of a query, and what to write instead; None if it
    can.
    """
    leave = "leave within out"
    match query:
        case WindowGroupBy() | SessionGroupBy() | TimelessGroupBy():
            return "the rows of aggregates count every tuple", f"{leave}; a longer window has fewer rows"
        case TimelessUnion() | ApplicationTimeUnion():
            return "every row of a UNION counts", f"{leave}, or write an alert for each SELECT"
        case TimelessSelect() | ApplicationTimeSelect() if query.distinct:
            return "DISTINCT has each row once already", f"{leave}, or leave DISTINCT out"
        case LatestValueJoin():
            return "the latest tuple of the joined stream is chosen among all of them", leave
        case JoinByTime() if query.window is not None:
            return "windows already decide which tuples may be omitted", f"{leave}, or read the stream itself"
        case JoinByTime() if query.exists or query.absences:
            return "EXISTS and NO READING already decide which tuples may be omitted", leave
        case JoinByTime() | TimelessSelect() | ApplicationTimeSelect() | NestedQuery():
            if len(query.sources) > 1:
                what = (
                    "this alert joins streams, and the bounds on their times decide which tuples may be"
                    " omitted"
                )
                return what, f"{leave}; with wider bounds on times, more is omitted"
            if isinstance(query, TimelessSelect):
                return "the stream has no event time", "declare WATERMARK FOR its time"
            return None
        case _:
            assert_never(query)

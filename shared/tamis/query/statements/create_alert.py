"""CREATE [OR REPLACE] ALERT: a name, options, and the query."""

from __future__ import annotations

from tamis.query.model import AlertDef, AlertOptions, Query
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
    if "for" in values:
        values["for_"] = values.pop("for")
    return AlertDef(
        name.text,
        query,
        AlertOptions(**values),
        replace,
        given.functions,
        given.sql,
        given.position(name),
    )


def _needs_every_tuple(query: Query) -> tuple[str, str] | None:
    """The reason why `within` can't choose among the rows of a query, and what to write instead; None if it
    can.
    """
    leave = "leave within out"
    if query.grouping is not None:
        return "the rows of aggregates count every tuple", f"{leave}; a longer window has fewer rows"
    if query.window is not None:
        return "windows already decide which tuples may be omitted", f"{leave}, or read the stream itself"
    if query.members:
        return "every row of a UNION counts", f"{leave}, or write an alert for each SELECT"
    if query.distinct:
        return "DISTINCT has each row once already", f"{leave}, or leave DISTINCT out"
    if query.asof:
        return "the latest tuple of the joined stream is chosen among all of them", leave
    if query.exists or query.absences:
        return "EXISTS and NO READING already decide which tuples may be omitted", leave
    if len(query.sources) > 1:
        what = "this alert joins streams, and the bounds on their times decide which tuples may be omitted"
        return what, f"{leave}; with wider bounds on times, more is omitted"
    if query.timeless:
        return "the stream has no event time", "declare WATERMARK FOR its time"
    return None

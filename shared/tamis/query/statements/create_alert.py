"""CREATE [OR REPLACE] ALERT: a name, options, and the query."""

from __future__ import annotations

from tamis.query.model import AlertDef, AlertOptions
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

"""The statements that define nothing: DROP, PAUSE, RESUME, SHOW and EXPLAIN."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.query.context import Namespace
from tamis.query.model import AlertDef, Drop, Explain, SetPaused, Show
from tamis.query.statements.cascading_errors import defined
from tamis.query.statements.statement_input import END_STATEMENT, StatementInput
from tamis.wording.names import suggest

KINDS = ("STREAM", "ALERT", "FUNCTION", "TABLE", "PATTERN")
"""The kinds of definitions."""

SUPPORTED = "STREAM, TABLE, ALERT, FUNCTION or PATTERN"

_NAMESPACES: Mapping[str, Namespace] = {
    "STREAM": "stream",
    "TABLE": "stream",
    "ALERT": "alert",
    "FUNCTION": "function",
    "PATTERN": "pattern",
}
_SHOWN = ("ALERTS", "STREAMS", "PATTERNS")
_SHOW = "write SHOW ALERTS, SHOW STREAMS or SHOW PATTERNS"


def kind_hint(word: str) -> str:
    """The hint for a word that is no kind of definition."""
    return suggest(word, KINDS, "write one of these words before the name")


def parse_drop(given: StatementInput) -> Drop | None:
    """DROP from after that word to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    kind = cursor.peek()
    if kind not in KINDS:
        raise cursor.unexpected(SUPPORTED, kind_hint(kind))
    cursor.take()
    if cursor.peek() == "IF" and cursor.peek(1) == "EXISTS":
        raise cursor.unexpected("a name", "leave IF EXISTS out")
    name = cursor.name(f"the name of the {kind.lower()}", f"write DROP {kind} name")
    cursor.finish(f"write one DROP {kind} for each name, without CASCADE")
    namespace = _NAMESPACES[kind]
    broken = context.broken(namespace)
    if name.text in broken:
        broken.discard(name.text)
        if not defined(context.catalog, namespace, name.text):
            return None
    return Drop(kind.lower(), name.text, given.position(name))


def parse_pause(given: StatementInput) -> SetPaused | None:
    """PAUSE ALERT from after PAUSE to the end; None if the alert has a mistake."""
    return _set_paused(given, "PAUSE", paused=True)


def parse_resume(given: StatementInput) -> SetPaused | None:
    """RESUME ALERT from after RESUME to the end; None if the alert has a mistake."""
    return _set_paused(given, "RESUME", paused=False)


def _set_paused(given: StatementInput, word: str, *, paused: bool) -> SetPaused | None:
    example = f"write {word} ALERT name"
    given.cursor.expect_word("ALERT", example)
    name = given.cursor.name("the name of an alert", example)
    given.cursor.finish(END_STATEMENT)
    if name.text in given.context.broken_alerts:
        return None
    return SetPaused(name.text, paused, given.position(name))


def parse_show(given: StatementInput) -> Show | None:
    """SHOW from after that word to the end; None if a mistake was reported."""
    kind = given.cursor.peek()
    if kind not in _SHOWN and kind.removesuffix("S") not in KINDS:
        raise given.cursor.unexpected("ALERTS, STREAMS or PATTERNS", suggest(kind, _SHOWN, _SHOW))
    given.cursor.take()
    given.cursor.finish(END_STATEMENT)
    if kind not in _SHOWN:
        given.context.error(f"SHOW {kind} is not supported yet", given.start, _SHOW)
        return None
    return Show(kind.lower(), given.position())


def parse_explain(given: StatementInput) -> Explain | None:
    """EXPLAIN from after that word to the end; None if a mistake was reported."""
    context, cursor = given.context, given.cursor
    if cursor.peek() in ("SELECT", "WITH"):
        sql = context.text.text[cursor.offset : cursor.end].rstrip()
        query = given.query()
        if query is None:
            return None
        position = given.position()
        name = context.anonymous_name(position)
        return Explain(AlertDef(name, query, functions=given.functions, sql=sql, position=position), position)
    example = "write EXPLAIN name, or EXPLAIN SELECT …"
    if cursor.peek() in ("ALERT", "STREAM") and cursor.at + 1 < len(cursor.tokens):
        cursor.take()  # the kind may stand before the name
    named = cursor.name("the name of a query, or SELECT", example)
    cursor.finish(example)
    if named.text in context.broken_alerts | context.broken_streams:
        return None
    return Explain(named.text, given.position(named))

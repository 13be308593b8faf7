"""Changes of declarations and bounds that allow omission of a stream. Each is tried before it is proposed.

A change is proposed only if the query with it omits tuples of the stream. The constants are placeholders for
the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from tamis.analysis.conjuncts import Analysis
from tamis.analysis.topology import omission_interval
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Call, Column, Literal, Type, columns
from tamis.expressions.python_functions import calls, name_of
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import identifier, interval
from tamis.plan.model import TimeBound
from tamis.planning.join_verdict import JoinVerdict, judge
from tamis.query.model import AlertDef, Catalog, DerivedDef

# The domain that is tried for a column without one: positive, so that no division by zero is left.
_LOW, _HIGH = 1.0, 100.0
# The span within which one alarm of each key may be enough, microseconds.
_SPAN = 30_000_000
# Each trial proves the query again.
_MOST_TRIALS = 12


def advice(definition: AlertDef | DerivedDef, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """The changes that allow omission, by alias. `definition` is accepted and joins by time."""
    verdict = judge(definition, catalog)
    analysis = verdict.analysis
    if analysis.contradiction:
        return {}
    if len(analysis.aliases) == 1:
        return _fewer_calls(definition, catalog, verdict)
    found = {}
    trials = 0
    for omission in verdict.omissions:
        if omission.interval:
            continue
        changes = list(_bounds(omission.alias, analysis)) if analysis.window is None else []
        if not changes and trials < _MOST_TRIALS:
            trials += 3
            changes = list(_declarations(omission.alias, definition, catalog, verdict))
        if changes:
            found[omission.alias] = tuple(changes)
    return found


def _fewer_calls(
    definition: AlertDef | DerivedDef, catalog: Catalog, verdict: JoinVerdict
) -> dict[str, tuple[str, ...]]:
    """The option `within`, if it saves calls of Python functions of an alert over one stream."""
    (omission,) = verdict.omissions
    if not isinstance(definition, AlertDef) or omission.interval or not any(calls(omission.filter)):
        return {}
    options = replace(definition.options, within=_SPAN)
    (changed,) = judge(replace(definition, options=options), catalog).omissions
    if not changed.interval or any(calls(changed.filter)):
        return {}
    name = name_of(next(calls(omission.filter)))
    change = (
        f"write WITH (within = '{seconds(_SPAN)}') if one alarm of each key in any span of this length is"
        f" enough: {name} is then called for retained tuples alone"
    )
    return {omission.alias: (change,)}


def _bounds(alias: str, analysis: Analysis) -> Iterator[str]:
    """A bound between two partners of a stream that gives it an omission interval."""
    if analysis.absences or (omission_interval(alias, analysis.aliases, analysis.bounds) or 0) > 0:
        return
    partners = [other for other in analysis.aliases if other != alias]
    for first, second in combinations(partners, 2):
        apart = [analysis.closure.upper.get(pair) for pair in ((first, second), (second, first))]
        if None in apart:
            continue
        half = max(1, min(span for span in apart if span is not None) // 2)
        more = [*analysis.bounds, TimeBound(first, second, -half, half)]
        longest = omission_interval(alias, analysis.aliases, more) or 0
        if longest > 0:
            times = [f"{identifier(one)}.{identifier(analysis.times[one])}" for one in (first, second)]
            bound = f"AND ABS({times[0]} - {times[1]}) <= {interval(half)}"
            yield (
                f"bound the times of its partners, such as {bound}: tuples of {alias} within"
                f" {seconds(longest)} can then replace each other, and the query has no row whose {first}"
                f" and {second} are further apart"
            )
            return


def _declarations(
    alias: str, definition: AlertDef | DerivedDef, catalog: Catalog, verdict: JoinVerdict
) -> Iterator[str]:
    """Domains and NOT NULL of the fewest columns that the condition reads, if they allow omission."""
    absence = verdict.analysis.absent.get(alias)
    conditions = verdict.analysis.conditions if absence is None else absence.conditions
    read = {(c.alias, c.name) for part in conditions for c in columns(part)}
    of = {one: verdict.analysis.streams[one].name for one in verdict.analysis.aliases}
    named = sorted({(of[one], name) for one, name in read})
    for null, domain in ((True, False), (False, True), (True, True)):
        needed = list(named)
        if not _omits(alias, definition, _declared(catalog, needed, null, domain)[0]):
            continue
        for column in named:
            fewer = [one for one in needed if one != column]
            if _omits(alias, definition, _declared(catalog, fewer, null, domain)[0]):
                needed = fewer
        yield f"declare {' and '.join(_declared(catalog, needed, null, domain)[1])}"
        return


def _declared(
    catalog: Catalog, named: Sequence[tuple[str, str]], null: bool, domain: bool
) -> tuple[Catalog, list[str]]:
    """The catalogue with NOT NULL or domains for columns, and what was added, in words."""
    streams, said = dict(catalog.streams), []
    for stream, name in named:
        column = streams[stream].column(name)
        if column is None:
            continue
        changed, parts = column, []
        if null and not column.not_null:
            changed, parts = replace(changed, not_null=True), ["NOT NULL"]
        if domain and column.check is None and column.type.numeric:
            changed = replace(changed, check=_within(column))
            parts.append(f"CHECK ({identifier(name)} BETWEEN {_LOW:g} AND {_HIGH:g})")
        if changed != column:
            streams[stream] = _with(streams[stream], changed)
            said.append(f"{stream}.{name} {' '.join(parts)}")
    declared = Catalog(
        streams, catalog.derived, catalog.functions, tables=catalog.tables, file_access=catalog.file_access
    )
    return declared, said


def _within(column: ColumnDef) -> Call:
    read = Column("", column.name, column.type)
    ends = (int(_LOW), int(_HIGH)) if column.type is not Type.DOUBLE else (_LOW, _HIGH)
    low, high = (Literal(end, column.type) for end in ends)
    return call("and", call(">=", read, low), call("<=", read, high))


def _with(stream: StreamDef, changed: ColumnDef) -> StreamDef:
    return replace(stream, columns=tuple(changed if c.name == changed.name else c for c in stream.columns))


def _omits(alias: str, definition: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    return any(one.alias == alias and one.interval for one in judge(definition, catalog).omissions)

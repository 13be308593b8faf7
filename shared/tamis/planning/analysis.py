"""The conjuncts of a query, sorted by what they say: key, time, one source, or the condition of several.

WHERE and ON are one conjunction. A conjunct is a key equality (two plain attributes of two sources), a time
bound, a predicate of one source (a filter, applied before omission), or part of the condition over several
sources; what is none of these is refused with its text and its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tamis.errors import Position, RefusedError, SqlError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases, columns
from tamis.expressions.opaque import UNKNOWN, calls, shapes_of
from tamis.planning.plan import TimeBound
from tamis.planning.times import bounds_of, intersect, is_time, mentions_time, window_bounds
from tamis.planning.topology import Closure, closure
from tamis.query.model import Catalog, Conjunct, Query, StreamDef, Window, same_window

Equality = tuple[Column, Column]
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Analysis:
    """A query taken apart. Everything is in the order of the text; expressions keep their aliases."""

    aliases: tuple[str, ...]
    streams: Mapping[str, StreamDef]  # by alias
    times: Mapping[str, str]  # alias -> its stream's time column
    equalities: tuple[Equality, ...]
    bounds: tuple[TimeBound, ...]
    window: Window | None  # that all tuples of a combination share
    closure: Closure  # tightest t_i - t_j, by bounds and window
    filters: Mapping[str, tuple[Expr, ...]]  # by alias
    conditions: tuple[Expr, ...]  # conjuncts over several sources that are neither key nor time
    contradiction: str | None  # why nothing can ever join, where that is so
    refused: tuple[SqlError, ...]

    def check(self) -> None:
        """Raises RefusedError with every refused conjunct."""
        if self.refused:
            raise RefusedError("; ".join(str(error) for error in self.refused))


def analyse(
    query: Query, catalog: Catalog, position: Position | None = None, *, early: bool = False
) -> Analysis:
    """Sort the conjuncts of `query`; `position` is named where the mistake is no single conjunct's.

    A predicate of one stream that calls a function of Python with a declared shape is part of the condition,
    where it is called only for what omission retains; with `early` it is a filter like others.
    """
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    order = tuple(streams)
    times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
    refused = [
        SqlError(
            f"stream {streams[alias].name} has no WATERMARK, so this is no join by time",
            position,
            f"evaluate recordings with tamis run, or declare WATERMARK in stream {streams[alias].name}",
        )
        for alias in order
        if alias not in times
    ]
    if query.grouping is not None and len(times) == len(order):
        hint = "evaluate recordings with tamis run, or leave the aggregates and GROUP BY out"
        refused.append(SqlError("the aggregates of windows are no join by time", position, hint))
    windowed = frozenset(source.alias for source in query.sources if source.window is not None)
    equalities: list[Equality] = []
    bounds: list[TimeBound] = []
    filters: dict[str, tuple[Expr, ...]] = {alias: () for alias in order}
    conditions: list[Expr] = []
    contradiction = None
    for conjunct in query.conjuncts:
        for part in flatten_and(conjunct.expr):
            sources = aliases(part)
            if part.type is not Type.BOOLEAN:
                refused.append(_refusal(conjunct, "is no condition", "compare it with something"))
            elif not sources:
                if not _holds(part):
                    contradiction = f"{conjunct.text} is never true"
                    filters = {alias: (*before, part) for alias, before in filters.items()}
            elif len(sources) == 1 and (early or not _expensive(part, query)):
                alias = next(iter(sources))
                if part not in filters[alias]:
                    filters[alias] += (part,)
            elif same_window(part, windowed):
                continue
            elif equality := key_equality(part, times):
                equalities.append(equality)
            elif found := bounds_of(part, times):
                bounds += found
            elif len(mentions_time(part, times)) > 1:
                refused.append(
                    _refusal(
                        conjunct,
                        "compares event times in a way that bounds no difference",
                        "write a bound such as b.ts BETWEEN a.ts AND a.ts + INTERVAL '30' SECOND",
                    )
                )
            elif part not in conditions:
                conditions.append(part)
    joined = intersect(bounds, order)
    distances = closure(order, (*joined, *window_bounds(query.window, order)))
    if contradiction is None and distances.contradictory:
        contradiction = "the time bounds contradict each other"
    return Analysis(
        order,
        streams,
        times,
        tuple(equalities),
        joined,
        query.window,
        distances,
        filters,
        tuple(conditions),
        contradiction,
        tuple(refused),
    )


def _expensive(part: Expr, query: Query) -> bool:
    """Does a predicate of one stream call a function of Python of declared shape, and is there omission that
    could spare calls?
    """
    declared = any(set(shapes_of(c)) - {UNKNOWN} for c in calls(part))
    return declared and (len(query.sources) > 1 or query.window is not None)


def flatten_and(expr: Expr) -> list[Expr]:
    """The conjuncts of nested ANDs, with NOT moved inwards: `NOT (p OR q)` has two, `NOT a < b` is `a >=
    b`.
    """
    if isinstance(expr, Call) and expr.op == "and":
        return [part for arg in expr.args for part in flatten_and(arg)]
    if isinstance(expr, Call) and expr.op == "not" and isinstance(expr.args[0], Call):
        inner = expr.args[0]
        if inner.op == "not":
            return flatten_and(inner.args[0])
        if inner.op == "or":
            return [part for arg in inner.args for part in flatten_and(Call("not", (arg,), Type.BOOLEAN))]
        if inner.op in OPPOSITE:
            return [Call(OPPOSITE[inner.op], inner.args, Type.BOOLEAN)]
    return [expr]


def key_equality(expr: Expr, times: Mapping[str, str]) -> Equality | None:
    """The two attributes that `expr` equates: plain columns of two sources, of one comparable type, not
    time.
    """
    if not isinstance(expr, Call) or expr.op != "=":
        return None
    left, right = expr.args
    if not isinstance(left, Column) or not isinstance(right, Column) or left.alias == right.alias:
        return None
    if is_time(left, times) or is_time(right, times):
        return None
    comparable = left.type is right.type or (left.type.numeric and right.type.numeric)
    return (left, right) if comparable else None


def attributes(parts: tuple[Expr, ...], alias: str) -> tuple[Column, ...]:
    """The columns of one source in some expressions, each once, in the order in which they come."""
    return tuple(dict.fromkeys(c for part in parts for c in columns(part) if c.alias == alias))


def _holds(expr: Expr) -> bool:
    """Is a condition without columns true?"""
    return bool(holds(expr, {}, 1)[0])


def _refusal(conjunct: Conjunct, what: str, hint: str) -> SqlError:
    return SqlError(f"{conjunct.text} {what}", conjunct.position, hint)

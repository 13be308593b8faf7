"""Resolution of one SELECT: clause by clause, then the checks across clauses."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tamis.expressions.nodes import Column
from tamis.query.context import Context
from tamis.query.model import BaseQuery, Conjunct, Output, SelectQuery
from tamis.query.other_systems.rewriting import in_windows
from tamis.query.scalars.resolution import ExpressionResolver, operands
from tamis.query.selects import windows
from tamis.query.selects.aggregated_streams import nested, refused_in_asof_join
from tamis.query.selects.calls.aggregates import Aggregates
from tamis.query.selects.calls.watched_calls import WatchedCalls
from tamis.query.selects.evaluation import Evaluation, evaluation_of, query_of
from tamis.query.selects.from_clause import Condition, resolve_from
from tamis.query.selects.grouping import Grouped, resolve_grouping
from tamis.query.selects.joins.asof import NO_ASOF, refused_beside_asof, resolve_asof
from tamis.query.selects.joins.existence import ExistenceTests
from tamis.query.selects.joins_in_windows import with_joined_streams
from tamis.query.selects.own_windows import with_own_windows
from tamis.query.selects.scope import FromItem, FromScope, WithOutputs
from tamis.query.selects.select_list import resolve_outputs
from tamis.query.selects.subqueries import UNNAMED, ResolveQuery, named_subqueries
from tamis.query.syntax.cursor import name_of
from tamis.query.syntax.dialect import span
from tamis.query.unsupported import CLAUSES, CURRENT_TIMES, DISTINCT_ON, DISTINCT_WINDOWS, USE_WINDOWS

_ALWAYS_SUPPORTED = ("expressions", "from_", "joins", "where", "with_")
_OVER = ("windows", "qualify")  # of window functions
_AROUND = "write it in the query around, which reads a stream, or prepare the rows in the table's file"
_AGGREGATING = {"group": "GROUP BY", "having": "HAVING"}  # over one stream, windows, or without event time


def resolve_select(
    context: Context, node: exp.Expr, offset: int, resolve: ResolveQuery
) -> SelectQuery | None:
    """The query of a SELECT; None if a mistake was reported. `offset` is where the SELECT begins, and
    `resolve` is for its subqueries.
    """
    if not isinstance(node, exp.Select):
        hint = "write SELECT … FROM … WHERE …, without parentheses around it"
        context.error("this isn't a SELECT", offset, hint)
        return None
    before = len(context.errors)
    series = WatchedCalls(node)
    with named_subqueries(context, node, resolve):
        complete = _check_clauses(context, node, offset)
        tests = ExistenceTests(context, node, resolve)
        scope, conditions = resolve_from(context, node, FromScope(), offset, resolve, apart=tests.after_join)
        scope = with_own_windows(node, scope)
        query = _resolved(context, node, tests.within(scope), conditions, series, complete=complete)
    series.reword(context, before, scope)
    return query


def _resolved(
    context: Context,
    node: exp.Select,
    tests: ExistenceTests,
    conditions: list[Condition],
    series: WatchedCalls,
    *,
    complete: bool,
) -> SelectQuery | None:
    """The query over the items of FROM, in the scope of `tests`. `complete`: no mistake was found so far."""
    scope = tests.scope
    aliases = [item.args["alias"] for item in node.expressions if isinstance(item, exp.Alias)]
    named = replace(scope, output_names=frozenset(name_of(alias).text for alias in aliases))
    series.windows.clause = "ON"
    if refused_in_asof_join(context, scope):
        return None
    asof = resolve_asof(context, named, series) if scope.asof else NO_ASOF
    if asof is not None and asof.items:
        scope, named = replace(scope, items=asof.items), replace(named, items=asof.items)
    conjuncts = _conjuncts(context, named, conditions, series, tests)
    series.windows.clause = "SELECT"
    known = all(item.sources for item in scope.items)
    offsets = [offset for _, offset in scope.sources]
    aggregates = Aggregates(scope)
    resolver = ExpressionResolver(context, scope, aggregates, series=series)
    outputs = resolve_outputs(context, resolver, scope, node)
    qualified = _qualify(context, scope, node, series, outputs)
    conjuncts = None if conjuncts is None or qualified is None else (*conjuncts, *qualified)
    resolver = ExpressionResolver(context, named, aggregates, series=series)
    aggregated = bool(aggregates.first_call or any(node.args.get(key) for key in _AGGREGATING))
    tested = any(context.stream(one) is not None for one in tests.hidden.sources)
    evaluation = Evaluation.BY_TIME
    if known:
        evaluation = evaluation_of(context, scope, node, tested=tested, aggregated=aggregated)
    if scope.asof and refused_beside_asof(context, node, aggregates.first_call):
        return None
    aggregable = evaluation in (Evaluation.TIMELESS, Evaluation.WINDOWED)
    refused = aggregated and known and not aggregable
    if outputs is None or conjuncts is None or asof is None or not complete or not known or refused:
        resolve_grouping(context, resolver, node, aggregates, None)
        if refused:
            of_tables = evaluation is Evaluation.OF_TABLES
            _refuse_aggregates(context, node, aggregates, of_tables=of_tables)
        return None
    distinct = node.args.get("distinct")
    if distinct is not None and not _supported_distinct(context, distinct, evaluation):
        return None
    grouping = None
    if aggregated:
        windowed = evaluation is Evaluation.WINDOWED
        grouped = _grouping(context, resolver, node, aggregates, outputs=outputs, windowed=windowed)
        if grouped is None:
            return None
        grouping, outputs = grouped.grouping, grouped.outputs
    if not series.windows.see_all_rows(context, scope):
        return None
    sources, watched = series.sources(context, [source for source, _ in scope.sources])
    joined = evaluation in (Evaluation.BY_TIME, Evaluation.OF_TABLES) and not asof.joins
    timeless = evaluation is Evaluation.TIMELESS and grouping is None
    if not tests.check(joined=joined, distinct=distinct is not None, timeless=timeless):
        return None
    clauses = BaseQuery(
        (*sources, *tests.hidden.sources),
        (*asof.conjuncts, *conjuncts, *tests.hidden.conjuncts),
        outputs,
        watched=watched,
    )
    query = query_of(evaluation, clauses, tests.hidden, asof, grouping, distinct=distinct is not None)
    inlined = sum(len(item.conjuncts) for item in scope.items)
    joins = with_joined_streams(context, query, offsets)
    if joins is None or not windows.check_windows(context, *joins, conjuncts[inlined:]):
        return None
    return nested(context, *joins)


def _check_clauses(context: Context, node: exp.Select, offset: int) -> bool:
    """Report each clause that is not supported; returns True if there is none."""
    supported = True
    for key, clause in node.args.items():
        if not clause or key in (*_ALWAYS_SUPPORTED, *_AGGREGATING, *_OVER, "distinct"):
            continue
        default = (f"{key.strip('_').upper()} is not supported", "leave it out")
        what, hint = CLAUSES.get(key, default)
        if key == "with_":
            context.broken_streams |= {one.alias_or_name for one in clause.expressions}
        place = clause[0] if isinstance(clause, list) else clause
        context.error(what, place if isinstance(place, exp.Expr) else offset, hint)
        supported = False
    return supported


def _conjuncts(
    context: Context,
    scope: FromScope,
    conditions: list[Condition],
    series: WatchedCalls,
    tests: ExistenceTests,
) -> tuple[Conjunct, ...] | None:
    """The conjuncts of ON and WHERE, after those of the derived streams; None if a mistake was reported.
    Those that test existence are put into `tests`.

    The conditions of derived streams behind ASOF JOIN are not among them: they choose its candidates.
    """
    chosen = {clause.item for clause in scope.asof}
    items = (item for number, item in enumerate(scope.items) if number not in chosen)
    conjuncts = [conjunct for item in items for conjunct in item.conjuncts]
    complete = True
    for condition in conditions:
        seen = scope.up_to(condition.visible)
        series.windows.clause = condition.clause
        resolver = ExpressionResolver(context, seen, series=series)
        for part in operands(condition.node, exp.And):
            if tests.within(seen).takes(part):
                continue
            expr = resolver.condition(part, f"each part of {condition.clause}")
            if expr is None:
                complete = False
            else:
                position = context.text.position(span(part)[0])
                shown = part.meta.get("shown") or context.source(part)
                conjuncts.append(Conjunct(expr, shown, position))
                series.windows.narrowing.append(expr)
    return tuple(conjuncts) if complete else None


def _qualify(
    context: Context,
    scope: FromScope,
    node: exp.Select,
    series: WatchedCalls,
    outputs: tuple[Output, ...] | None,
) -> tuple[Conjunct, ...] | None:
    """The conjuncts of QUALIFY, which may also name columns of SELECT; None if a mistake was reported."""
    clause = node.args.get("qualify")
    if clause is None:
        return ()
    if outputs is None:
        return None
    resolver = ExpressionResolver(context, WithOutputs(scope, outputs), series=series)
    found: list[Conjunct] = []
    parts = operands(clause.this, exp.And)
    for part in parts:
        expr = resolver.condition(part, "each part of QUALIFY")
        if expr is not None:
            position = context.text.position(span(part)[0])
            found.append(Conjunct(expr, context.source(part), position))
    if len(found) == len(parts) and not series.windows.clauses:
        hint = "put the condition into WHERE"
        context.error("QUALIFY needs a window function, such as lag(x) OVER (…)", clause, hint)
        return None
    return tuple(found) if len(found) == len(parts) else None


def _supported_distinct(context: Context, distinct: exp.Expr, evaluation: Evaluation) -> bool:
    """Tell if DISTINCT is supported here; if not, that is reported."""
    if evaluation is Evaluation.OF_TABLES:
        context.error("DISTINCT over tables alone is not supported", distinct, _AROUND)
        return False
    supported = evaluation in (Evaluation.TIMELESS, Evaluation.APPLICATION_TIME)
    if supported and distinct.args.get("on") is None:
        return True
    what, hint = DISTINCT_ON if supported else DISTINCT_WINDOWS
    context.error(what, distinct, hint)
    return False


def _refuse_aggregates(
    context: Context, node: exp.Select, aggregates: Aggregates, *, of_tables: bool
) -> None:
    """Report aggregates, GROUP BY and HAVING over tables alone, or without windows over a join with event
    time or over rows of aggregates, as one mistake. Not if the query has the current time: then it is meant
    to find silent keys.
    """
    if of_tables:
        place = aggregates.first_call or next(node.args[key] for key in _AGGREGATING if node.args.get(key))
        if context.around:
            context.error_once("aggregates over tables alone are not supported", place, _AROUND)
        return
    if any(str(call.this).lower() in CURRENT_TIMES for call in node.find_all(exp.Anonymous)):
        return
    rewritten = in_windows(context.text, context.select_tokens, context.catalog)
    hint = USE_WINDOWS if rewritten is None else f"write {rewritten}"
    (item, *others), (source, _) = aggregates.scope.items, aggregates.scope.sources[0]
    if rewritten is None and not others and (time := _event_time(context, item)) is not None:
        hint = f"write FROM TUMBLE({item.stream}, {time}, INTERVAL '1' MINUTE) and GROUP BY window_start"
        if item.stream == UNNAMED:
            hint = f"write the subquery as WITH p AS (…) in front, {hint.replace(UNNAMED, 'p')}"
    of = "joins with event time"
    if len(aggregates.scope.sources) == 1 and source.aggregated is not None:
        of, name = "rows of aggregates", aggregates.scope.items[0].alias
        hint = (
            f"group by the window_end of its rows, or write FROM TUMBLE({name}, window_end, INTERVAL '1'"
            f" HOUR) and GROUP BY window_start; give a subquery a name for this: WITH {name} AS (…)"
        )
    for key, name in _AGGREGATING.items():
        clause = node.args.get(key)
        if clause:
            context.error_once(f"{name} over {of} needs windows", clause, hint, USE_WINDOWS)
            return
    if aggregates.first_call is not None:
        context.error_once(f"aggregates over {of} need windows", aggregates.first_call, hint, USE_WINDOWS)


def _event_time(context: Context, item: FromItem) -> str | None:
    """The name of a column that is the event time of a stream of an item of FROM; None if there is none."""
    times = {one.alias: stream.time for one in item.sources if (stream := context.stream(one)) is not None}
    found = (item.columns or {}).items()
    return next((n for n, e in found if isinstance(e, Column) and times.get(e.alias) == e.name), None)


def _grouping(
    context: Context,
    resolver: ExpressionResolver,
    node: exp.Select,
    aggregates: Aggregates,
    *,
    outputs: tuple[Output, ...],
    windowed: bool,
) -> Grouped | None:
    """GROUP BY, HAVING and the aggregates; None if a mistake was reported. `windowed`: the query is over
    windows.
    """
    if windowed and not windows.check_aggregates(
        context,
        resolver,
        node,
        outputs=outputs,
        sources=[one for one in aggregates.scope.sources if one[0].windowed],
    ):
        return None
    grouped = resolve_grouping(context, resolver, node, aggregates, outputs)
    distinct = node.args.get("distinct")
    if grouped is not None and distinct is not None:
        hint = "leave DISTINCT out: each group has one row at a time"
        context.error("SELECT DISTINCT with aggregates is not supported", distinct, hint)
        return None
    return grouped

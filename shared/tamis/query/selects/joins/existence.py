"""EXISTS, NOT EXISTS and NO READING in WHERE and ON, and the joins that mean the same.

| syntax | meaning |
|---|---|
| `EXISTS (SELECT … FROM c WHERE …)`, `a SEMI JOIN c ON …` | a row for each combination with a partner |
| `NOT EXISTS (SELECT …)`, `a ANTI JOIN c ON …`, `a LEFT JOIN c ON … WHERE c.x IS NULL` | without one |
| `x IN (SELECT y FROM c WHERE …)`, `x NOT IN (…)` | EXISTS and NOT EXISTS with `c.y = x` |
| `NO READING FOR INTERVAL '5' MINUTE` | no later reading of the same key within this time |

The sources of the subquery get names that no other source of the query has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from sqlglot import exp

from tamis.declarations.watches import window_functions
from tamis.expressions.nodes import Call, Column, Expr, Type
from tamis.expressions.sql_text import identifier, to_sql
from tamis.query.context import Context
from tamis.query.model import Absence, Conjunct, Source
from tamis.query.scalars import operators
from tamis.query.scalars.operators import checked
from tamis.query.scalars.resolution import ExpressionResolver, operands
from tamis.query.scalars.scopes import Scope
from tamis.query.selects import from_clause
from tamis.query.selects.joins.anti_joins import (
    is_anti_join,
    item_name,
    not_null_columns,
    null_test,
    silence,
    silence_length,
    unwrapped,
)
from tamis.query.selects.scope import FromItem, FromScope, with_free_names
from tamis.query.selects.subqueries import ResolveQuery, named_subqueries
from tamis.query.syntax.cursor import Name
from tamis.query.syntax.dialect import NoReading, span
from tamis.query.unsupported import CLAUSES

_NO_ITEMS = FromScope()
_SUPPORTED = ("expressions", "from_", "joins", "where", "with_")


@dataclass(frozen=True)
class InnerScope(FromScope):
    """The scope of a subquery of EXISTS: its own FROM hides the names of the query around it. `joined`: its
    streams are joined with ON, where a name that both have is ambiguous.
    """

    outer: FromScope = _NO_ITEMS
    joined: bool = False

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The expression for a column of the subquery's own FROM or, if that lacks the name, of the query
        around it. If `joined`, an unqualified name that both have is a mistake. None if a mistake was
        reported.
        """
        if any(item.columns is None for item in self.items):
            return None
        if table is not None and table.text not in {item.alias for item in self.items}:
            return self.outer.column(context, node, table, name)
        if table is not None:
            return super().column(context, node, table, name)
        if not self.has(name.text) and self.outer.has(name.text):
            return self.outer.column(context, node, table, name)
        if self.joined and self.has(name.text) and self.outer.has(name.text):
            what = f"'{name.text}' is ambiguous: several streams have this column"
            choices = [
                item.alias for item in (*self.outer.items, *self.items) if name.text in (item.columns or ())
            ]
            context.error(what, node, "write " + " or ".join(f"{one}.{name.text}" for one in choices))
            return None
        return super().column(context, node, table, name)


@dataclass
class Hidden:
    """The sources under EXISTS and NOT EXISTS of one SELECT, as of `tamis.query.model.JoinByTime`.

    `place`: the offset of the first test. `anti_joined`: the items of LEFT JOINs whose columns must be tested
    by IS NULL, by their name, with the columns that can't be NULL in a tuple that joins.
    """

    sources: list[Source] = field(default_factory=list)
    exists: list[str] = field(default_factory=list)
    conjuncts: list[Conjunct] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    place: int | None = None
    anti_joined: dict[str, set[str]] = field(default_factory=dict)
    # A stream without event time, the offset of its test, and the name of the test in messages.
    untimed: tuple[str, int, str] | None = None
    broken: bool = False  # a mistake was reported

    def add(
        self,
        context: Context,
        sources: Sequence[Source],
        conjuncts: Sequence[Conjunct],
        *,
        negated: bool,
        at: int,
        test: str,
        join: str = "join the table in the FROM of the query",
    ) -> bool:
        """Add the sources of one test at offset `at`; False if a mistake in them was reported. `test`: its
        name in messages; `join`: what to write instead of the test of a table.
        """
        if self.place is None:
            self.place = at
        allowed = all([_is_stream(context, source, at, test, join) for source in sources])
        self.broken |= not allowed
        for stream in (context.catalog.streams.get(source.stream) for source in sources):
            if stream is not None and stream.time is None:
                self.untimed = self.untimed or (stream.name, at, test)
        self.sources += sources
        names = tuple(source.alias for source in sources)
        if negated:
            self.absences.append(Absence(names, tuple(conjuncts), context.text.position(at)))
        else:
            self.exists += names
            self.conjuncts += conjuncts
        return allowed

    def named(self, outer: FromScope) -> set[str]:
        """The names that sources have already."""
        return outer.aliases | {source.alias for source in self.sources}


@dataclass
class ExistenceTests:
    """The tests of existence in one SELECT. `scope` is that of the clause which is resolved, `resolve` is for
    subqueries.
    """

    context: Context
    select: exp.Select
    resolve: ResolveQuery
    scope: FromScope = _NO_ITEMS
    hidden: Hidden = field(default_factory=Hidden)

    def within(self, scope: FromScope) -> ExistenceTests:
        """The tests for a clause with this scope; they add their sources to the `hidden` of all clauses."""
        return replace(self, scope=scope)

    def after_join(self, join: exp.Expr, scope: FromScope) -> FromScope | None:
        """The scope after a SEMI or ANTI JOIN, or a LEFT JOIN that is meant as one, which is one of the
        tests; None for other joins.
        """
        kind = join.args.get("kind")
        anti = kind == "ANTI" or is_anti_join(join, self.select)
        if join.args.get("side") in ("RIGHT", "FULL") or (not anti and kind != "SEMI"):
            return None
        return self.within(scope)._with_join(join, kind, anti=anti)

    def _with_join(self, join: exp.Expr, kind: str | None, *, anti: bool) -> FromScope:
        at = span(join)[0]
        on = join.args.get("on")
        if on is None:
            self.context.error("this JOIN has no ON", join, "write the condition after ON")
            self.hidden.broken = True
            return self.scope
        inner = from_clause.add_item(
            self.context, join.this, InnerScope(outer=self.scope, joined=True), self.resolve
        )
        inner, conjuncts = self._finish(inner, [("ON", part) for part in operands(on, exp.And)])
        if conjuncts is None:
            return self.scope
        sources = [source for source, _ in inner.sources]
        outer = kind not in ("ANTI", "SEMI")
        test = "LEFT JOIN … IS NULL" if outer else f"{kind} JOIN"
        advice = _join_of(sources, conjuncts, negated=anti)
        added = self.hidden.add(self.context, sources, conjuncts, negated=anti, at=at, test=test, join=advice)
        name = item_name(join.this)
        if outer:
            (item,) = inner.items
            tested = not_null_columns(self.context, item, conjuncts) if added else set(item.columns or ())
            self.hidden.anti_joined[name] = tested
        return replace(self.scope, hidden_aliases=self.scope.hidden_aliases | {name})

    def takes(self, part: exp.Expr) -> bool:
        """Take a conjunct that tests existence; returns False for other conjuncts."""
        null = null_test(part, self.hidden.anti_joined)
        if null is not None:
            name, column = null
            if column not in self.hidden.anti_joined[name]:
                what = f"{name}.{column} IS NULL doesn't say that {name} has no reading"
                known = sorted(self.hidden.anti_joined[name])
                hint = f"test a column that a reading can't lack: {name}.{known[0]} IS NULL" if known else ""
                self.context.error(what, part, hint or "write NOT EXISTS (SELECT …)")
                self.hidden.broken = True
            return True
        test = existence_test(part)
        if test is None:
            return False
        node, negated = test
        at = span(part)[0]
        if isinstance(node, NoReading):
            if negated:
                self.context.error("NOT NO READING is not supported", at, "leave both out")
                self.hidden.broken = True
            else:
                self._add_silence(node, at)
            return True
        member = node if isinstance(node, exp.In) else None
        called = "EXISTS" if member is None else "IN (SELECT …)"
        select = node.this if member is None else member.args["query"].this
        inner = InnerScope(outer=self.scope)
        if not check_select(self.context, select, at, called):
            self.hidden.broken = True
            return True
        with named_subqueries(self.context, select, self.resolve):
            inner, conditions = from_clause.resolve_from(self.context, select, inner, at, self.resolve)
        if inner.asof:
            hint = f"write ASOF JOIN in a query without {called}"
            self.context.error(f"ASOF JOIN is not supported under {called}", inner.asof[0].join, hint)
            self.hidden.broken = True
            return True
        parts = [(one.clause, p) for one in conditions for p in operands(one.node, exp.And)]
        inner, conjuncts = self._finish(inner, parts)
        if member is None:
            check_outputs(self.context, select, inner)
        elif conjuncts is not None:
            equal = self._membership(member, select, inner, negated=negated)
            self.hidden.broken |= equal is None
            conjuncts = None if equal is None else (*conjuncts, equal)
        if conjuncts is not None:
            sources = [source for source, _ in inner.sources]
            join = _join_of(sources, conjuncts, negated=negated)
            self.hidden.add(self.context, sources, conjuncts, negated=negated, at=at, test=called, join=join)
        return True

    def _membership(
        self, member: exp.In, select: exp.Select, inner: InnerScope, *, negated: bool
    ) -> Conjunct | None:
        """The equality of `x IN (SELECT y …)`; None if a mistake was reported.

        `x NOT IN (…)` is NOT EXISTS only if neither x nor y is ever NULL.
        """
        context = self.context
        outputs = [one.this if isinstance(one, exp.Alias) else one for one in select.expressions]
        if len(outputs) != 1 or outputs[0].find(exp.Star):
            context.error("IN needs a SELECT of one column", member, "write x IN (SELECT y FROM … WHERE …)")
            return None
        left = ExpressionResolver(context, self.scope, series=_NoSeries()).resolve(member.this)
        right = ExpressionResolver(context, inner, series=_NoSeries()).resolve(outputs[0])
        if left is None or right is None:
            return None
        # The refusal of a table says what to write instead.
        if negated and not any(source.stream in context.catalog.tables for source, _ in inner.sources):
            nullable = next(
                (
                    text
                    for expr, scope, text in ((left, self.scope, member.this), (right, inner, outputs[0]))
                    if not _never_null(context, expr, scope)
                ),
                None,
            )
            if nullable is not None:
                what = f"{context.source(nullable)} may be NULL, and NOT IN is never true beside a NULL"
                one, other = to_sql(right), to_sql(left)
                hint = f"write NOT EXISTS (SELECT 1 FROM … WHERE {one} = {other} AND …), or declare NOT NULL"
                context.error(what, member, hint)
                return None
        equal = checked(context, member, operators.compare, "=", left, right)
        if equal is None:
            return None
        return Conjunct(equal, context.source(member), context.text.position(span(member)[0]))

    def _add_silence(self, node: NoReading, at: int) -> None:
        length = silence_length(self.context, node, at)
        if length is None or not all(item.sources for item in self.scope.items):
            self.hidden.broken = True
            return
        found = silence(self.context, self.scope, node, length, self.hidden.named(self.scope))
        if found is None:
            hint = "write NOT EXISTS (SELECT 1 FROM … WHERE …) with a bound on the times"
            self.context.error("NO READING is only for queries over one stream", at, hint)
            self.hidden.broken = True
        else:
            self.hidden.add(
                self.context, found.sources, found.conjuncts, negated=True, at=at, test="NO READING"
            )

    def _finish(
        self, inner: InnerScope, parts: Sequence[tuple[str, exp.Expr]]
    ) -> tuple[InnerScope, tuple[Conjunct, ...] | None]:
        """The scope of a subquery, whose sources get free names, and its conjuncts."""
        taken = self.hidden.named(self.scope)
        items: list[FromItem] = []
        for item in inner.items:
            items.append(with_free_names(item, taken))
            taken |= {source.alias for source in items[-1].sources}
        inner = replace(inner, items=tuple(items))
        conjuncts = inner_conjuncts(self.context, inner, parts)
        self.hidden.broken |= conjuncts is None
        return inner, conjuncts

    def check(self, *, joined: bool, distinct: bool, timeless: bool) -> bool:
        """Report tests that the query can't have; returns True if there is no mistake. `joined`: the query is
        a join by time without windows, or reads one stream. `timeless`: its own streams have no event time.

        With DISTINCT, EXISTS is a join, of which a row is given once however many partners it has.
        """
        hidden = self.hidden
        if hidden.broken:
            return False
        aggregated = any(source.aggregated is not None for source, _ in self.scope.sources)
        if hidden.place is None:
            return True
        same = timeless == (hidden.untimed is not None)
        if distinct and same and not hidden.absences and not aggregated:
            return True
        if hidden.untimed is not None:
            name, at, test = hidden.untimed
            hint = f"add WATERMARK FOR column AS column - INTERVAL '5' SECOND to stream {name}"
            if timeless and not hidden.absences:
                hint = "write SELECT DISTINCT: each row is then given once, as soon as it has a partner"
            self.context.error(f"{test} needs event time, and stream {name} has no WATERMARK", at, hint)
            return False
        if joined and not distinct and not aggregated:
            return True
        if distinct and hidden.absences:
            what, hint = (
                "DISTINCT beside NOT EXISTS is not supported",
                "leave DISTINCT out: each row is given once",
            )
        else:
            what = "EXISTS is supported only in joins by time"
            hint = "leave out windows, aggregates, ASOF JOIN, tables and streams without WATERMARK"
        self.context.error(what, hidden.place, hint)
        return False


class _NoSeries:
    """Calls over the readings of a key under EXISTS, each of which is reported as a mistake."""

    def call(self, context: Context, node: exp.Expr, name: str, scope: Scope) -> None:
        """Report a call of similar, similarity, scale, shift or pattern as a mistake."""
        hint = "write it in the WHERE of the query, beside EXISTS"
        context.error_once(f"{name} is not supported under EXISTS", node, hint)

    def window(self, context: Context, node: exp.Expr, scope: Scope) -> None:
        """Report a window function as a mistake."""
        hint = "write it in the WHERE of the query, beside EXISTS"
        context.error_once("window functions are not supported under EXISTS", node, hint)


def existence_test(part: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """The test of existence that a conjunct consists of, and True if it is negated; None for any other."""
    node, negated = unwrapped(part), False
    while isinstance(node, exp.Not):
        node, negated = unwrapped(node.this), not negated
    if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Subquery):
        return node, negated
    return (node, negated) if isinstance(node, exp.Exists | NoReading) else None


def _never_null(context: Context, expr: Expr, scope: FromScope) -> bool:
    """True for a column that is declared NOT NULL."""
    source = next(
        (one for one, _ in scope.sources if isinstance(expr, Column) and one.alias == expr.alias), None
    )
    stream = None if source is None else context.catalog.streams.get(source.stream)
    column = stream.column(expr.name) if stream is not None and isinstance(expr, Column) else None
    return column is not None and (column.not_null or column.name == stream.time)  # type: ignore[union-attr]


def _join_of(sources: Sequence[Source], conjuncts: Sequence[Conjunct], *, negated: bool) -> str:
    """The advice to join a table in place of the test that it has a row with these conjuncts."""
    if negated:
        return "give the table a row for each value and a BOOLEAN column, join it in FROM and test the column"
    if len(sources) != 1 or not conjuncts:
        return "join the table in the FROM of the query"
    (source,) = sources
    first, *others = (conjunct.expr for conjunct in reversed(conjuncts))
    condition = to_sql(reduce(lambda all_of, one: Call("and", (all_of, one), Type.BOOLEAN), others, first))
    named = " ".join(dict.fromkeys((identifier(source.stream), identifier(source.alias))))
    return f"join it in FROM, which gives a row for each of its rows that fit: JOIN {named} ON {condition}"


def check_select(context: Context, select: exp.Expr, at: int, called: str) -> bool:
    """Report what the SELECT of a test of existence can't have; returns True if there is nothing. `called`:
    the test in messages.
    """
    if not isinstance(select, exp.Select):
        of_sets = isinstance(select, exp.SetOperation)
        what = f"{called} needs a SELECT" + (" without UNION, EXCEPT and INTERSECT" if of_sets else "")
        example = "EXISTS (SELECT 1 FROM …)" if called == "EXISTS" else "x IN (SELECT y FROM …)"
        context.error(what, at, f"write {example}, with a condition of its own for each SELECT")
        return False
    before = len(context.errors)
    for key, clause in select.args.items():
        if clause and key not in _SUPPORTED:
            clause_name = key.strip("_").upper()
            hint = CLAUSES[key][1] if key in ("order", "limit", "offset") else "leave it out"
            first = clause[0] if isinstance(clause, list) else clause
            place = first if isinstance(first, exp.Expr) else at
            context.error(f"{clause_name} is not supported under {called}", place, hint)
    return len(context.errors) == before


def check_outputs(context: Context, select: exp.Select, inner: InnerScope) -> None:
    """Resolve the columns of the SELECT of an EXISTS, whose values don't count, to find mistakes in them."""
    resolver = ExpressionResolver(context, inner, series=_NoSeries())
    for item in select.expressions:
        expr = item.this if isinstance(item, exp.Alias) else item
        star = isinstance(expr, exp.Star) or (
            isinstance(expr, exp.Column) and isinstance(expr.this, exp.Star)
        )
        if not star:
            resolver.resolve(expr)


def inner_conjuncts(
    context: Context, inner: InnerScope, parts: Sequence[tuple[str, exp.Expr]]
) -> tuple[Conjunct, ...] | None:
    """The conjuncts of a subquery: those of its derived streams, and `parts` with the name of their clause;
    None if a mistake was reported.
    """
    found = [conjunct for item in inner.items for conjunct in item.conjuncts]
    resolver = ExpressionResolver(context, inner, series=_NoSeries())
    complete = all(item.sources for item in inner.items)
    for clause, part in parts:
        if existence_test(part) is not None:
            context.error(
                "EXISTS and IN (SELECT …) inside of another one are not supported yet",
                part,
                "join the streams in one subquery instead",
            )
            complete = False
            continue
        expr = resolver.condition(part, f"each part of {clause}")
        if expr is None:
            complete = False
        else:
            position = context.text.position(span(part)[0])
            found.append(Conjunct(expr, context.source(part), position))
    return tuple(found) if complete else None


def _is_stream(context: Context, source: Source, at: int, test: str, join: str) -> bool:
    """Tell if a source can stand under EXISTS or NO READING; if not, that is reported."""
    stream = context.catalog.streams.get(source.stream)
    if source.aggregated is not None:
        hint = f"read the stream itself under {test}"
        context.error(f"{test} over rows of aggregates is not supported yet", at, hint)
    elif stream is None:
        context.error(f"{test} over a table is not supported", at, join)
    elif stream.base is not None:
        called = "a window function" if window_functions(stream.watches) else "similar()"
        hint = f"read {stream.shown_name} itself under {test}"
        if test == "NO READING":
            hint = f"write FROM {stream.shown_name} WHERE NO READING FOR …, and {called} beside it after AND"
        context.error(f"{test} over a subquery or stream with {called} is not supported yet", at, hint)
    elif source.windowed:
        hint = f"read the stream itself under {test}, and bound its times"
        context.error(f"{test} over windows is not supported", at, hint)
    else:
        return True
    return False

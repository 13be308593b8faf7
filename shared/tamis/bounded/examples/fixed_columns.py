"""Columns that have one value in all tuples of an example, so that conditions hold that are no differences.

A condition that reads only such columns holds in an example of any size if it holds for these values. So the
query needs as much memory as the differences alone, for the inputs in which the columns have these values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.examples.sql_values import candidates, choices, number_of_value
from tamis.bounded.timeless.alternatives import alternatives
from tamis.bounded.timeless.differences import DifferenceForm, differences, factor_of
from tamis.bounded.timeless.witness import nodes_of
from tamis.declarations.definitions import ColumnDef
from tamis.difference_bounds import Closure
from tamis.expressions.double_order import double_at
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases, columns, substitute
from tamis.expressions.vectors import Value, Vector
from tamis.operators.synopses.decide import Violation
from tamis.plan.conjunction import EXTREME_STREAM, Conjunction, Difference, Kind, Node
from tamis.query.computed_columns import meaning
from tamis.query.model import Catalog, Query, grouping_of, selects_of

# So many choices of values that fulfil all conditions are tried.
_TRIED = 8
# A node with so few values takes each of them; one with more takes the candidates within its limits.
_FEW = 12
Name = tuple[str, str]  # alias, column


@dataclass(frozen=True)
class Fixed:
    """A query with columns that have one value each: `values` of those that some condition reads."""

    query: Conjunction
    closure: Closure
    values: Mapping[Name, Value]


class FixedColumns:
    """Choices of fixed columns for one alternative of `member`, a SELECT of the query `whole` or that query
    itself.
    """

    def __init__(
        self,
        whole: Query,
        member: Query,
        catalog: Catalog,
        codes: dict[str, int],
        alternative: tuple[Conjunction, Closure, Violation],
    ) -> None:
        self._whole, self._member, self._catalog, self._codes = whole, member, catalog, codes
        self._query, self._closure, self._failing = alternative
        self._streams = {
            alias: catalog.streams[stream]
            for alias, stream in zip(self._query.aliases, self._query.streams, strict=True)
            if stream != EXTREME_STREAM
        }
        self._nodes = {
            (self._query.alias(at), node.column): at for at, node in enumerate(self._query.nodes, 1)
        }
        self._growing = {
            (self._query.alias(n), self._query.nodes[n - 1].column) for n in nodes_of(self._failing)
        }

    def found(self) -> Iterator[Fixed]:
        """Queries with fixed columns that fulfil all other conditions; none if a condition reads a column
        whose values must differ.
        """
        opaque = [one for one in self._conditions() if not self._guaranteed(one)]
        fixed = {(c.alias, c.name) for one in opaque for c in columns(one)} | self._shown_beside()
        computed = {name: expr for name, expr in self._computed().items() if name in self._nodes}
        fixed |= {(c.alias, c.name) for expr in computed.values() for c in columns(expr)}
        fixed |= {
            (self._query.alias(n), self._query.nodes[n - 1].column)
            for one in self._query.key_limits
            for n in one.nodes
        }
        if self._hidden() or (fixed | set(computed)) & self._growing:
            return
        fillers = {name for name in self._read() if name not in self._nodes and name not in fixed}
        checks = [one for alias in self._streams for one in self._checks(alias)]
        every = fixed | fillers
        inside = [one for one in checks if {(c.alias, c.name) for c in columns(one)} <= every]
        # A comparison with NULL is NULL, and a CHECK that is NULL is satisfied.
        absent = {name for name in fillers if not self._definition(name).not_null}
        beside = [
            one
            for one in checks
            if len(set(columns(one))) > 1
            and one not in inside
            and not self._chosen(one)
            and not (
                differences(one, self._code) is not None
                and absent & {(c.alias, c.name) for c in columns(one)}
            )
        ]
        implied = [differences(one, self._code) for one in beside]
        if any(form is None for form in implied):
            return
        tested = {(c.alias, c.name) for one in (*opaque, *inside) for c in columns(one)}
        values = self._values(sorted(fillers - tested), sorted((fixed | fillers) & tested | fixed), opaque)
        if values is None:
            return
        known = [one for one in implied if one is not None]
        chosen = self._satisfying(values, opaque, inside, computed)
        for one in itertools.islice(chosen, _TRIED):
            made = self._with(one, known)
            if made is not None:
                yield Fixed(*made, {name: one[name] for name in sorted(fixed)})

    def _code(self, text: str) -> int:
        return number_of_value(text, Type.VARCHAR, self._codes)

    def _conditions(self) -> Iterator[Expr]:
        for conjunct in self._member.conjuncts:
            for part in flatten_and(conjunct.expr):
                over = aliases(part)
                if over and over <= set(self._streams):
                    yield part

    def _guaranteed(self, part: Expr) -> bool:
        """True if the differences of the query imply the condition."""
        if differences(part, self._code) is not None:
            return True
        return self._chosen(part)

    def _chosen(self, part: Expr) -> bool:
        """True if the query contains one of the alternatives of a condition with OR on one stream."""
        split = alternatives(part) or () if len(aliases(part)) == 1 else ()
        return len(split) > 1 and any(all(map(self._implied, one)) for one in split)

    def _implied(self, part: Expr) -> bool:
        form = differences(part, self._code)
        if form is None or any(c.type is Type.DOUBLE for c in columns(part)):
            return False
        numbers = self._numbered(form)
        apart = {(one.left, one.right, one.offset) for one in self._query.unequal}
        return (
            numbers is not None
            and all(self._closure.between(one.left, one.right) <= one.bound for one in numbers)
            and all(
                (self._node(one.left), self._node(one.right), one.offset) in apart for one in form.inequations
            )
        )

    def _numbered(self, form: DifferenceForm) -> list[Difference] | None:
        """The bounds of a form; None if a column is no node."""
        found = []
        for one in form.bounds:
            left, right = self._node(one.left), self._node(one.right)
            if left is None or right is None:
                return None
            found.append(Difference(left, right, one.bound))
        return found

    def _node(self, column: Column | None) -> int | None:
        return 0 if column is None else self._nodes.get((column.alias, column.name))

    def _shown_beside(self) -> set[Name]:
        """The columns that SELECT shows only in expressions, but for the one whose values must differ."""
        names = {(self._query.alias(n), self._query.nodes[n - 1].column) for n in self._query.in_expressions}
        return names - self._growing

    def _hidden(self) -> bool:
        """True if the values that must differ need not show in any expression of SELECT."""
        at = self._failing.node
        if at is None or at not in self._query.in_expressions:
            return False
        name = self._query.alias(at), self._query.nodes[at - 1].column
        return not any(
            factor_of(output.expr, column)
            for output in self._member.select
            for column in columns(output.expr)
            if (column.alias, column.name) == name
        )

    def _computed(self) -> Mapping[Name, Expr]:
        """The columns that the query computes, with the expressions over their streams' own columns."""
        grouping = grouping_of(self._member)
        return {
            (alias, one.name): meaning(Column(alias, one.name, one.type), self._member)
            for alias, one in (grouping.computed if grouping is not None else ())
        }

    def _read(self) -> set[Name]:
        """The columns that any SELECT reads of a stream, and those that CHECKs need, for each occurrence."""
        read: dict[str, set[str]] = {}
        for member in selects_of(self._whole):
            streams = {source.alias: source.stream for source in member.sources}
            grouping = grouping_of(member)
            exprs = [*(one.expr for one in member.conjuncts), *(one.expr for one in member.select)]
            if grouping is not None:
                exprs += [meaning(one, member) for one in grouping.by]
                exprs += [meaning(one.column, member) for one in grouping.aggregates if one.column]
            for column in (c for one in exprs for c in columns(one)):
                if column.alias in streams:
                    read.setdefault(streams[column.alias], set()).add(column.name)
        for stream in self._streams.values():
            checked = {c.name for one in stream.columns if one.check is not None for c in columns(one.check)}
            own = read.setdefault(stream.name, set())
            own |= {one.name for one in stream.columns if one.not_null and one.name in checked}
        return {
            (alias, one.name)
            for alias, stream in self._streams.items()
            for one in stream.columns
            if one.computed is None and one.name in read[stream.name]
        }

    def _checks(self, alias: str) -> Iterator[Expr]:
        """The parts of the CHECKs of an occurrence over columns that have a value in the example."""
        have = {name for of, name in (*self._nodes, *self._read()) if of == alias}
        for one in self._streams[alias].columns:
            if one.check is not None and one.computed is None:
                for part in flatten_and(
                    substitute(one.check, lambda c: Column(alias, c.name, c.type)),
                ):
                    if {c.name for c in columns(part)} <= have:
                        yield part

    def _definition(self, name: Name) -> ColumnDef:
        found = self._streams[name[0]].column(name[1])
        assert found is not None, name
        return found

    def _values(
        self, free: Sequence[Name], tested: Sequence[Name], opaque: Sequence[Expr]
    ) -> Mapping[Name, Sequence[Value]] | None:
        """The values to try for each column; None if a column's values can't be chosen."""
        found: dict[Name, Sequence[Value]] = {}
        for name in (*free, *tested):
            definition = self._definition(name)
            checks = [one.check for one in self._streams[name[0]].columns if one.check is not None]
            tried = candidates(definition.type, [*opaque, *checks])
            nullable = not definition.not_null
            if name not in self._nodes:
                absent: list[Value] = [None] if nullable else []
                found[name] = [*tried, *absent] if name in tested else [*absent, *tried]
                continue
            own = self._of_node(self._nodes[name], definition.type, tried)
            if own is None:
                return None
            found[name] = own
        return found

    def _of_node(self, node: int, type_: Type, tried: Sequence[Value]) -> list[Value] | None:
        if self._query.nodes[node - 1].null:
            return [None]
        low, high = self._closure.lower(node), self._closure.upper(node)
        if type_ is Type.DOUBLE:
            return [double_at(int(low))] if low == high else None
        if type_ is Type.VARCHAR:
            texts = {number: text for text, number in self._codes.items()}
            return [texts[int(low)]] if low == high and low in texts else [*tried]
        if high - low < _FEW:
            few = range(int(low), int(high) + 1)
            return [bool(one) for one in few] if type_ is Type.BOOLEAN else [*few]
        ends = [int(one) for one in (low, high) if abs(one) != float("inf")]
        return [one for one in (*tried, *ends) if isinstance(one, int) and low <= one <= high]

    def _satisfying(
        self,
        values: Mapping[Name, Sequence[Value]],
        opaque: Sequence[Expr],
        checks: Sequence[Expr],
        computed: Mapping[Name, Expr],
    ) -> Iterator[dict[Name, Value]]:
        """The choices that fulfil all conditions and violate no CHECK, and the values of computed columns."""
        tried = list(choices(values))
        read = {
            name: Vector.from_list([one[at] for one in tried], self._definition(name).type)
            for at, name in enumerate(values)
        }
        good = np.ones(len(tried), np.bool_)
        for condition in opaque:
            good &= holds(condition, read, len(tried))
        for check in checks:
            good &= ~holds(Call("not", (check,), Type.BOOLEAN), read, len(tried))
        made = {name: evaluate(expr, read, len(tried)).to_list() for name, expr in computed.items()}
        for at in np.flatnonzero(good).tolist():
            own = {name: values_[at] for name, values_ in made.items()}
            yield {**dict(zip(values, tried[at], strict=True)), **own}

    def _with(
        self, chosen: Mapping[Name, Value], known: Sequence[DifferenceForm]
    ) -> tuple[Conjunction, Closure] | None:
        """The query in which the columns have the chosen values; None if that contradicts it."""
        nodes, places = list(self._query.nodes), dict(self._nodes)
        fixed: list[Difference] = []
        occurrence = {alias: at for at, alias in enumerate(self._query.aliases)}
        for (alias, name), value in chosen.items():
            type_ = self._definition((alias, name)).type
            null = value is None
            at = places.get((alias, name))
            if at is None:
                kinds: dict[Type, Kind] = {Type.DOUBLE: "dense", Type.VARCHAR: "text", Type.TIMESTAMP: "time"}
                kind = kinds.get(type_, "whole")
                nodes.append(Node(occurrence[alias], f"{alias}.{name}", name, kind=kind, null=null))
                at = places[alias, name] = len(nodes)
            elif null and not nodes[at - 1].null:
                if not nodes[at - 1].nullable:
                    return None
                nodes[at - 1] = replace(nodes[at - 1], nullable=False, null=True)
            number = number_of_value(value, type_, self._codes)
            fixed += [Difference(at, 0, number), Difference(0, at, -number)]
        for form in known:
            for bound in form.bounds:
                ends = [
                    0 if one is None else places.get((one.alias, one.name))
                    for one in (bound.left, bound.right)
                ]
                if ends[0] is None or ends[1] is None:
                    return None
                fixed.append(Difference(ends[0], ends[1], bound.bound))
        query = replace(
            self._query,
            nodes=tuple(nodes),
            differences=(*self._query.differences, *fixed),
            caveats=(),
            key_limits=(),
        )
        closure = query.closure()
        return None if closure is None else (query, closure)

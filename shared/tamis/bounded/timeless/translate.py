"""Translation of a query to conjunctions of differences, as in `tamis.plan.conjunction`.

A condition with OR on one stream has several alternatives. Each of them gives an alternative of the query,
and the query is the union of these. An inequation between streams is treated in the same way: its
alternatives are `<` and `>`. The verdict stays exact for conditions on one stream.

Conditions on one stream are also evaluated as they are written, on each tuple. So the result is right if a
condition can't be written as differences.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.timeless.alternatives import MOST, Alternative, alternatives, without_constants
from tamis.bounded.timeless.declared_domains import (
    caveats,
    domain,
    further_checks,
    key_limits,
    split_by_intervals,
)
from tamis.bounded.timeless.differences import (
    DifferenceForm,
    Inequation,
    differences,
    one_to_one,
    same_for_all,
)
from tamis.difference_bounds import Closure
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases, columns, substitute
from tamis.expressions.sql_text import to_sql
from tamis.plan.conjunction import (
    Conjunction,
    Difference,
    Kind,
    Node,
    Unequal,
)
from tamis.query.model import Catalog, Query, is_distinct


@dataclass(frozen=True)
class Branch:
    """One alternative that doesn't contradict itself: of each choice, the condition in `taken` is true, and
    those in `excluded` are not.
    """

    conjunction: Conjunction
    closure: Closure
    taken: tuple[Expr, ...]
    excluded: tuple[Expr, ...]


@dataclass(frozen=True)
class Translation:
    """A query over streams without time, taken apart. Node k of all branches is `columns[k - 1]`.

    `filters` are the conditions on one source each; `not_null` has expressions of a source that must not be
    NULL besides; `joins` are conditions over several sources that are no differences.
    """

    query: Query
    columns: tuple[Column, ...]
    branches: tuple[Branch, ...]
    filters: Mapping[str, tuple[Expr, ...]]
    not_null: Mapping[str, tuple[Expr, ...]]
    joins: tuple[Expr, ...]
    codes: Mapping[str, int]
    contradiction: str | None = None


class _Translator:
    """The parts of all conjuncts of a query, collected one conjunct after the other."""

    def __init__(self, query: Query, catalog: Catalog, extra: Sequence[Column], checks: bool) -> None:
        self.query, self.extra, self.checks = query, extra, checks
        self.streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
        self.codes: dict[str, int] = {}
        self.differences: list[DifferenceForm] = []
        self.checked: list[DifferenceForm] = []
        self.choices: list[tuple[Alternative, ...]] = []
        self.filters: dict[str, list[Expr]] = {alias: [] for alias in self.streams}
        self.not_null: dict[str, list[Expr]] = {alias: [] for alias in self.streams}
        self.joins: list[Expr] = []
        self.caveats: list[str] = []
        self.false: str | None = None

    def code(self, text: str) -> int:
        """The number of a constant text."""
        return self.codes.setdefault(text, len(self.codes))

    def translate(self) -> Translation:
        for conjunct in self.query.conjuncts:
            for part in flatten_and(conjunct.expr):
                self._conjunct(part)
        if self.checks:
            for alias, stream in self.streams.items():
                more = further_checks(alias, stream, self._read(), self._never_null(alias), self.code)
                self.checked += more.differences
                self.choices += more.choices
        nodes = self._nodes()
        known = [form for column in nodes for form in domain(column, self.streams[column.alias], self.code)]
        for alias, stream in self.streams.items():
            self.caveats += caveats(alias, stream, nodes, self.code)
        for column in nodes:
            definition = self.streams[column.alias].column(column.name)
            if definition is not None and definition.computed is not None:
                self.caveats.append(f"it isn't known which tuples have which value of {column.name}")
        for column in {c for one in self.differences if one.compares for c in _compared(one)}:
            self.not_null[column.alias].append(is_present(column))
        branches = self._branches(nodes, [*known, *self.checked, *self.differences])
        return Translation(
            self.query,
            nodes,
            () if self.false else tuple(branches),  # nothing is kept for a query that never has a row
            {alias: tuple(dict.fromkeys(exprs)) for alias, exprs in self.filters.items()},
            {alias: tuple(dict.fromkeys(exprs)) for alias, exprs in self.not_null.items()},
            tuple(self.joins),
            self.codes,
            self.false,
        )

    def _conjunct(self, part: Expr) -> None:
        over = aliases(part)
        form = differences(part, self.code)
        if len(over) == 1:
            (alias,) = over
            self.filters[alias].append(part)
        if not over:
            self.false = self.false or (None if _true(part) else to_sql(part))
        elif form is not None:
            self.differences.append(form)
            for guard in form.guards:
                if len(aliases(guard)) == 1:
                    (alias,) = aliases(guard)
                    self.not_null[alias].append(is_present(guard))
        elif len(over) > 1:
            self.joins.append(part)
            self.caveats.append(
                f"{to_sql(part)} may overflow, and is NULL then: declare the BIGINT columns as INT, or limit"
                " their values by CHECK"
                if differences(_narrow(part), self.code) is not None
                else "Tamis can decide only join conditions of the form a - b < 5 over integers, and"
                f" {to_sql(part)} isn't one"
            )
        else:
            self._filter(part)

    def _filter(self, part: Expr) -> None:
        """A condition on one stream that is not a single difference."""
        known = same_for_all(part)
        if known is False:
            self.false = self.false or to_sql(part)
        if known is not None:
            return
        split = alternatives(part) if isinstance(part, Call) and part.op in ("or", "and", "not") else None
        split = None if split is None else without_constants(split)
        if split == ():
            self.false = self.false or to_sql(part)
        elif split is not None and () in split:
            return  # one alternative is always true
        elif split is not None and len(split) > 1:
            self.choices.append(split)
        elif split is not None and split != ((part,),):
            # Constants, or NOT of OR, leave a single alternative: all of its conditions hold.
            for one in split[0]:
                self._conjunct(one)
        else:
            self.caveats.append(f"it isn't known which tuples satisfy {to_sql(part)}")

    def _never_null(self, alias: str) -> frozenset[str]:
        """The columns of a source that can't be NULL in a tuple that is part of a row."""
        compared = {
            c.name for one in self.differences if one.compares for c in _compared(one) if c.alias == alias
        }
        return frozenset(compared | {one.name for one in self.streams[alias].columns if one.not_null})

    def _nodes(self) -> tuple[Column, ...]:
        """The columns that matter: those that are read, and those of the CHECKs that count."""
        checked = [c for one in self.checked for c in _compared(one)]
        return tuple(dict.fromkeys((*self._read(), *checked)))

    def _read(self) -> tuple[Column, ...]:
        """The columns that are compared, shown, or needed by a condition."""
        read = [c for one in self.differences for c in _compared(one)]
        for split in self.choices:
            for one in itertools.chain.from_iterable(split):
                form = differences(one, self.code)
                read += [] if form is None else _compared(form)
        read += [c for output in self.query.select for c in columns(output.expr) if c.alias]
        read += [c for join in self.joins for c in columns(join)]
        read += self.extra
        return tuple(dict.fromkeys(read))

    def _branches(self, nodes: tuple[Column, ...], known: Sequence[DifferenceForm]) -> Iterator[Branch]:
        choices = list(self.choices)
        caveats = list(self.caveats)
        while len(choices) > 1 and math.prod(map(len, choices)) > MOST:
            dropped = choices.pop(max(range(len(choices)), key=lambda i: len(choices[i])))
            caveats.append(
                f"a condition with OR has {len(dropped)} alternatives, which are too many to decide"
            )
        apart = [one for form in known for one in form.inequations if _between(one)]
        for taken in itertools.product(*(range(len(split)) for split in choices)):
            picked = [choices[i][at] for i, at in enumerate(taken)]
            excluded = tuple(_and(choices[i][j]) for i, at in enumerate(taken) for j in range(at))
            forms = [
                *known,
                *(r for one in picked for part in one if (r := differences(part, self.code)) is not None),
            ]
            unread = [p for one in picked for p in one if differences(p, self.code) is None]
            doubtful = [
                *caveats,
                *(f"it isn't known which tuples satisfy {to_sql(p)}" for p in unread),
                *(
                    ["Tamis decides a != between streams as two queries, one with < and one with >"]
                    if apart
                    else []
                ),
            ]
            for sides in itertools.product((False, True), repeat=len(apart)):
                yield from self._branch(
                    nodes,
                    forms,
                    list(zip(apart, sides, strict=True)),
                    doubtful,
                    (tuple(map(_and, picked)), excluded),
                )

    def _branch(
        self,
        nodes: tuple[Column, ...],
        forms: Sequence[DifferenceForm],
        sides: Sequence[tuple[Inequation, bool]],
        caveats: list[str],
        choice: tuple[tuple[Expr, ...], tuple[Expr, ...]],
    ) -> Iterator[Branch]:
        compared = {c for form in forms if form.compares for c in _compared(form)}
        nulls = {c for form in forms if form.null for c in _compared(form)}
        if nulls & compared or not all(map(self._admits_null, nulls)):
            return
        # Declarations hold for a column's values, and NULL is none.
        forms = [one for one in forms if one.compares or one.null or not nulls & {*_compared(one)}]
        number: dict[Column | None, int] = {None: 0, **{column: at for at, column in enumerate(nodes, 1)}}
        at = {alias: i for i, alias in enumerate(self.streams)}
        found, unequal = _numbered(forms, sides, number)
        exact = tuple(dict.fromkeys(number[c] for j in self.joins for c in columns(j) if c in number))
        outputs = [output.expr for output in self.query.select]
        projected = tuple(dict.fromkeys(number[c] for one in outputs for c in columns(one) if c in number))
        plain = {number[c] for one in outputs if (c := one_to_one(one)) is not None and c in number}
        conjunction = Conjunction(
            tuple(stream.name for stream in self.streams.values()),
            tuple(self.streams),
            tuple(self._node(c, at[c.alias], compared=c in compared, null=c in nulls) for c in nodes),
            found,
            projected,
            is_distinct(self.query),
            unequal,
            exact,
            caveats=tuple(dict.fromkeys(caveats)),
            key_limits=tuple(key_limits(self.streams, nodes)),
            in_expressions=tuple(node for node in projected if node not in plain),
        )
        closure = conjunction.closure()
        if closure is not None:
            dense = [at for at, column in enumerate(nodes, 1) if column.type is Type.DOUBLE]
            for part, own in split_by_intervals(conjunction, closure, dense):
                yield Branch(part, own, *choice)

    def _node(self, column: Column, occurrence: int, *, compared: bool, null: bool) -> Node:
        nullable = not compared and self._admits_null(column)
        kinds: dict[Type, Kind] = {Type.DOUBLE: "dense", Type.VARCHAR: "text", Type.TIMESTAMP: "time"}
        kind = kinds.get(column.type, "whole")
        return Node(occurrence, f"{column.alias}.{column.name}", column.name, nullable, kind, null)

    def _admits_null(self, column: Column) -> bool:
        """True if the column may be NULL. The columns of windows aren't declared and are never NULL."""
        declared = self.streams[column.alias].column(column.name)
        return declared is not None and not declared.not_null


def translate(
    query: Query, catalog: Catalog, extra: Sequence[Column] = (), *, checks: bool = False
) -> Translation:
    """Take apart a query over streams without time. Columns in `extra` become nodes too.

    With `checks`, CHECKs over several columns and those with OR over DOUBLEs are conditions like those of
    WHERE. This gives more alternatives (see `decided_translation`).
    """
    return _Translator(query, catalog, extra, checks).translate()


def _narrow(part: Expr) -> Expr:
    """A condition with INT columns in place of BIGINT columns: their sums and differences can't overflow."""
    return substitute(part, lambda one: replace(one, type=Type.INT) if one.type is Type.BIGINT else one)


def _numbered(
    forms: Sequence[DifferenceForm],
    sides: Sequence[tuple[Inequation, bool]],
    number: Mapping[Column | None, int],
) -> tuple[tuple[Difference, ...], tuple[Unequal, ...]]:
    """The differences and inequations of nodes. An inequation between streams has its side in `sides`:
    whether the left value is above the right one.
    """
    bounds = [Difference(number[b.left], number[b.right], b.bound) for form in forms for b in form.bounds]
    for one, above in sides:
        left, right = number[one.left], number[one.right]
        bounds.append(
            Difference(right, left, -one.offset - 1) if above else Difference(left, right, one.offset - 1)
        )
    inequations = (one for form in forms for one in form.inequations if not _between(one))
    unequal = tuple(Unequal(number[one.left], number[one.right], one.offset) for one in inequations)
    return tuple(dict.fromkeys(bounds)), unequal


def _compared(form: DifferenceForm) -> list[Column]:
    ends = [end for b in form.bounds for end in (b.left, b.right)]
    ends += [end for a in form.inequations for end in (a.left, a.right)]
    return [end for end in ends if end is not None]


def _between(one: Inequation) -> bool:
    return one.right is not None and one.left.alias != one.right.alias


def is_present(expr: Expr) -> Expr:
    """The condition that a value isn't NULL."""
    return Call("not", (Call("is_null", (expr,), Type.BOOLEAN),), Type.BOOLEAN)


def _and(parts: Alternative) -> Expr:
    return parts[0] if len(parts) == 1 else Call("and", parts, Type.BOOLEAN)


def _true(part: Expr) -> bool:
    return bool(holds(part, {}, 1)[0])

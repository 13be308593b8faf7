"""Proof that a query is unbounded, from an example that is run through the query as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from tamis.bounded.examples.fixed_columns import FixedColumns, Name
from tamis.bounded.examples.rows_as_written import RowsAsWritten, can_run
from tamis.bounded.examples.sql_values import SqlTuple, SqlValues
from tamis.bounded.timeless.proof import SHOWN, Proof
from tamis.bounded.timeless.witness import Witness, nodes_of, within_key_limits
from tamis.difference_bounds import Closure
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Call, Expr, Literal, Type, substitute
from tamis.expressions.vectors import Value, Vector
from tamis.operators.synopses.decide import Violation, violations
from tamis.plan.conjunction import EXTREME_STREAM, Conjunction, Difference
from tamis.query.model import Catalog, Query, selects_of

# Sums of such numbers don't overflow.
_LARGEST = 2**60


@dataclass(frozen=True)
class WrittenProof(Proof):
    """A proof whose example is run through `whole`, the query as it is written. `values`: the columns that
    have one value in all tuples because a condition reads them.
    """

    whole: Query = field(kw_only=True)
    catalog: Catalog = field(kw_only=True)
    codes: dict[str, int] = field(kw_only=True)
    values: dict[Name, Value] = field(kw_only=True)

    def told(self, witness: Witness) -> int:
        """The number of subsets of the stored tuples that later tuples tell apart by rows of `whole`; 0 if
        the example can't be run, or violates a CHECK.
        """
        parts = self.tuples(witness)
        tuples = [*chain(*parts)]
        if not (can_run(self.whole, self.catalog, tuples) and admitted(self.catalog, tuples)):
            return 0
        rows = RowsAsWritten(self.whole, self.catalog, tuples)
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + len(part))
        count = len(witness.stored)
        later = [frozenset(range(ends[at], ends[at + 1])) for at in range(count, len(parts))]
        subsets = chain.from_iterable(combinations(range(count), size) for size in range(count + 1))
        return len({tuple(rows.added(frozenset(one), more) for more in later) for one in subsets})

    def tuples(self, witness: Witness) -> list[list[SqlTuple]]:
        """The tuples of an example in values of SQL: each stored tuple, and then each completion."""
        types = {
            (name, column.name): column.type
            for name, stream in self.catalog.streams.items()
            for column in stream.columns
        }
        values = SqlValues(self.query, self.closure, types, self.codes)
        parts = [[(witness.stream, one)] for one in witness.stored]
        parts += [[one for one in more if one[0] != EXTREME_STREAM] for more in witness.completions]
        made = iter(values.tuples(chain(*parts)))
        return [[next(made) for _ in part] for part in parts]


def proof_as_written(
    whole: Query,
    member: Query,
    catalog: Catalog,
    codes: dict[str, int],
    alternative: tuple[Conjunction, Closure, Violation],
) -> WrittenProof | None:
    """The proof that `whole` is unbounded by a failing condition of `member`, which is one of its SELECTs or
    the query itself; None if no example shows it.

    `catalog` has the columns that the query computes; `codes` are the numbers of constant texts in `member`.
    """
    query, _, failing = alternative
    if any(stream.watches for stream in catalog.streams.values()):
        return None
    known = dict(codes)
    for one in FixedColumns(whole, member, catalog, known, alternative).found():
        far = sum(_sizes(whole))
        growing = nodes_of(failing)
        # The values of the example lie beyond the constants of all SELECTs: this adds no condition.
        apart = tuple(Difference(node, node, far) for node in growing)
        wider = replace(one.query, differences=(*one.query.differences, *apart))
        for again in violations(wider, one.closure):
            if again.occurrence != failing.occurrence or again.condition != failing.condition:
                continue
            made = WrittenProof(
                wider,
                one.closure,
                again,
                whole=whole,
                catalog=catalog,
                codes=known,
                values=dict(one.values),
            )
            witness = made.witness()
            if (
                witness is not None
                and within_key_limits(replace(wider, key_limits=query.key_limits), witness)
                and made.told(witness) == 2**SHOWN
            ):
                return made
    return None


def _sizes(query: Query) -> Iterator[int]:
    """The sizes of all whole numbers that the SELECTs of a query name."""
    for member in selects_of(query):
        exprs: list[Expr] = [one.expr for one in member.conjuncts]
        exprs += [one.expr for one in member.select]
        yield from _numbers(exprs)


def _numbers(exprs: Iterable[Expr]) -> Iterator[int]:
    for expr in exprs:
        if isinstance(expr, Call):
            yield from _numbers(expr.args)
        elif isinstance(expr, Literal) and isinstance(expr.value, int | float) and abs(expr.value) < 2**31:
            yield abs(int(expr.value)) + 1


def admitted(catalog: Catalog, tuples: Iterable[SqlTuple]) -> bool:
    """True if no tuple violates a CHECK or has a whole number that is too large."""
    for name, values in tuples:
        if any(isinstance(one, int) and abs(one) > _LARGEST for one in values.values()):
            return False
        stream = catalog.streams[name]
        read = {
            ("", one.name): Vector.from_list([values.get(one.name)], one.type)
            for one in stream.columns
            if one.computed is None
        }
        for column in stream.columns:
            if column.check is not None and column.computed is None:
                check = substitute(column.check, lambda c: replace(c, alias=""))
                if holds(Call("not", (check,), Type.BOOLEAN), read, 1)[0]:
                    return False
    return True

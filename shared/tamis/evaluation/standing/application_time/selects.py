"""The SELECTs of a query in application time, and their alternatives with the entries that each keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tamis.bounded.application_time.decide import decided_translation
from tamis.bounded.application_time.evaluator import Condition, Evaluator
from tamis.bounded.application_time.static_relations import QueryInputs, query_inputs
from tamis.bounded.application_time.store import Entry, Shown
from tamis.bounded.application_time.translate import Alternative, alternatives
from tamis.bounded.timeless.minimised_alternatives import Numbers, conditions, numbers
from tamis.bounded.timeless.translate import Translation
from tamis.difference_bounds import Bound
from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.kept_columns import KeptColumns, Values, kept_columns, needed
from tamis.evaluation.standing.state import number_from_text, number_to_text
from tamis.expressions.nodes import Expr, aliases
from tamis.expressions.vectorized.evaluate import evaluate, holds
from tamis.expressions.vectors import Vector
from tamis.query.model import Catalog, Query

Nodes = list[Bound | None]  # the values of a tuple at the nodes of an alternative


class Branch:
    """One alternative of a SELECT, with its evaluator."""

    def __init__(
        self, translation: Translation, one: Alternative, inputs: QueryInputs, kept: KeptColumns
    ) -> None:
        self.query, self.kept = one.timed.query, kept
        self.stands = one.minimal.representatives
        self._codes = translation.codes
        query = self.query
        self.conditions = [conditions(translation, one.minimal, alias) for alias in query.aliases]
        joins = [Condition(self._occurrences(expr), self._hold(expr)) for expr in translation.joins]
        self.evaluator = Evaluator(one.timed, joins)
        for occurrence, rows in one.rows.items():
            relation = inputs.relations[query.streams[occurrence]]
            shown = kept.values(query.streams[occurrence], relation.columns, len(relation))
            for at, place in enumerate(rows.places):
                values: list[Bound | None] = [None] * query.size
                for node, own in rows.values.items():
                    values[node] = own[at]
                self.evaluator.add_relation_row(occurrence, values, shown[place])

    def values(self, occurrence: int, batch: Batch, rows: int) -> list[Nodes]:
        """The values of tuples at the nodes of an occurrence."""
        columns: list[Numbers | None] = [None] * self.query.size
        for node in self.query.own(occurrence):
            columns[node] = numbers(batch[self.query.nodes[node - 1].column], self._codes)
        return [[None if c is None else c[row] for c in columns] for row in range(rows)]

    def of_kept(self, occurrence: int, kept: Values) -> Nodes:
        """The values of a tuple that is kept."""
        (found,) = self.values(occurrence, self.kept.vectors(self.query.streams[occurrence], [kept]), 1)
        return found

    def dumped(self) -> list[Any]:
        """All entries, as JSON: for each part its combinations."""
        return [
            [list(members), [[[one.shown[x] for x in members], number_to_text(one.count)] for one in store]]
            for members, store in self.evaluator.stores.items()
        ]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore all entries."""
        for own, combinations in dumped:
            members = tuple(own)
            for shown, count in combinations:
                every: list[Shown] = [None] * len(self.query.streams)
                values: list[Bound | None] = [None] * self.query.size
                for occurrence, one in zip(members, shown, strict=True):
                    every[occurrence] = tuple(one)
                    found = self.of_kept(occurrence, tuple(one))
                    for node in self.query.own(occurrence):
                        values[node] = found[node]
                self.evaluator.restore(members, Entry(values, every, int(number_from_text(count))))

    def _occurrences(self, expr: Expr) -> frozenset[int]:
        return frozenset(self.query.aliases.index(self.stands.get(alias, alias)) for alias in aliases(expr))

    def _hold(self, expr: Expr) -> Any:
        def hold(shown: Sequence[Shown]) -> bool:
            columns = {}
            for alias in aliases(expr):
                occurrence = self.query.aliases.index(self.stands.get(alias, alias))
                one = whole(shown[occurrence])
                vectors = self.kept.vectors(self.query.streams[occurrence], [one])
                columns.update({(alias, name): vector for name, vector in vectors.items()})
            return bool(holds(expr, columns, 1)[0])

        return hold


class Select:
    """One SELECT of the query."""

    def __init__(self, query: Query, catalog: Catalog) -> None:
        self.query = query
        self.inputs = query_inputs(query, catalog)
        translation = decided_translation(query, self.inputs)
        self.kept = kept_columns(query, self.inputs.catalog, needed(translation))
        self.source = {source.alias: source.stream for source in query.sources}
        found = () if translation.contradiction is not None else alternatives(translation, self.inputs)
        self.branches = [Branch(translation, one, self.inputs, self.kept) for one in found]

    def columns(self, found: Mapping[str, Sequence[Values]], count: int) -> list[Vector]:
        """The columns of SELECT, for rows that consist of these tuples."""
        made = {
            (alias, name): vector
            for alias, kept in found.items()
            for name, vector in self.kept.vectors(self.source[alias], kept).items()
        }
        return [evaluate(output.expr, made, count) for output in self.query.select]

    def form(self) -> list[Any]:
        """The form that a state must fit; the rows of static relations are part of it."""
        rows = {
            name: hashlib.sha256(
                orjson.dumps(self.kept.values(name, relation.columns, len(relation)))
            ).hexdigest()
            for name, relation in self.inputs.relations.items()
        }
        return [len(self.branches), dict(sorted(self.kept.names.items())), rows]


def whole(shown: Shown) -> Values:
    """The values of the tuples of a row, which has one tuple of every source."""
    assert shown is not None, "a row has a tuple of every source"
    return shown  # type: ignore[return-value]

"""Join of the tuples that change a synopsis of representatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.evaluate import evaluate
from tamis.expressions.json_form import to_json
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Columns, Vector
from tamis.operators.contract import Batch
from tamis.operators.representatives.of_cover import synopsis_of
from tamis.operators.representatives.synopsis import Synopsis, meeting
from tamis.operators.windows.row_joins import RowIndex, joined
from tamis.plan import nodes

Ints = NDArray[np.int64]

# The most combinations of tuples of one part of a batch, if all of them change a synopsis of one group.
_COMBINATIONS = 4_000_000

Name = tuple[str, str]
# The place of a tuple in its batch is one more column of what is joined.
_PLACE: Name = ("", "")


class RepresentedJoin:
    """The combinations of tuples of several sources, of which only representatives are kept, as the values of
    expressions over them.

    A tuple that doesn't change a synopsis isn't joined: another tuple stands for it in every combination. So
    only the others are joined, with what was kept before and with each other.
    """

    def __init__(self, sources: Sequence[nodes.RepresentedSource], shown: Sequence[Expr]) -> None:
        self._sources, self._shown = [_Source(one) for one in sources], shown
        count = len(self._sources)
        self._part = count * int(_COMBINATIONS ** (1 / count))

    @property
    def entries(self) -> int:
        """The number of kept tuples."""
        return sum(len(synopsis) for source in self._sources for synopsis in source.synopses)

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Iterator[tuple[Ints, list[Vector]]]:
        """The combinations that interleaved tuples complete, for one part of the tuples after the other:
        ascending, the places of the tuples that complete them, and the values of the expressions. `of`: for
        each tuple, in order, the number of its batch.
        """
        places = {name: np.flatnonzero(of == number) for number, name in enumerate(batches)}
        read = [source for source in self._sources if source.stream in batches]
        for first in range(0, len(of), self._part):
            for source in read:
                own = places[source.stream]
                at = slice(*np.searchsorted(own, [first, first + self._part]).tolist())
                source.change(batches[source.stream], at, own[at])
            if any(len(source.places) for source in read):
                yield self._completed()
                for source in read:
                    source.keep()

    def nothing(self) -> tuple[Ints, list[Vector]]:
        """No combinations."""
        columns = {name: one for source in self._sources for name, one in source.nothing().items()}
        return np.zeros(0, np.int64), self._values(columns, 0)

    def dumped(self) -> list[Any]:
        """The kept tuples of each source, as JSON."""
        return [source.dumped() for source in self._sources]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore dumped tuples."""
        for source, own in zip(self._sources, dumped, strict=True):
            source.restore(own)

    def form(self) -> list[object]:
        """The form that a state must have."""
        return [source.form() for source in self._sources]

    def _values(self, columns: Columns, size: int) -> list[Vector]:
        return [evaluate(expr, columns, size) for expr in self._shown]

    def _completed(self) -> tuple[Ints, list[Vector]]:
        """The combinations of the changing tuples, in the order of the tuples that complete them."""
        found = [self.nothing()]
        for number, source in enumerate(self._sources):
            every = self._joined(number, source.steps, source.places, source.changing)
            found += ((places, self._values(columns, len(places))) for places, columns in every)
        places = np.concatenate([one for one, _ in found])
        order = np.argsort(places, kind="stable")
        values = zip(*(own for _, own in found), strict=True)
        return places[order], [Vector.concat(own).take(order) for own in values]

    def _joined(
        self, number: int, steps: Sequence[nodes.JoinStep], places: Ints, columns: Columns
    ) -> Iterator[tuple[Ints, Columns]]:
        """The combinations of changing tuples of the source `number` with tuples of the others: for each the
        place of its last tuple, and all columns. Of the sources before it the changing tuples count, too, and
        so each combination arises once.
        """
        if not len(places):
            return
        if not steps:
            yield places, columns
            return
        step, *others = steps
        other = next(place for place, one in enumerate(self._sources) if one.alias == step.alias)
        own_places, own = self._sources[other].tuples(changing=other < number)
        key = [evaluate(expr, own, len(own_places)) for expr in step.own]
        rows = {**own, _PLACE: Vector(own_places)}
        for at, found in joined(step, RowIndex(key, len(own_places)), columns, len(places), rows):
            left = {name: vector for name, vector in found.items() if name != _PLACE}
            yield from self._joined(number, others, np.maximum(places[at], found[_PLACE].data), left)


class _Source:
    """The tuples of one source: those that are kept, and those of a batch that change what is kept.

    `places` are the places in the batch of the changing tuples, ascending, and `changing` their columns.
    """

    def __init__(self, node: nodes.RepresentedSource) -> None:
        self.alias, self.stream, self.steps = node.alias, node.stream, node.steps
        self._filter, self._names = node.filter, [name for name, _ in node.columns]
        self._types = [kind for _, kind in node.columns]
        self._covers = node.covers
        self.synopses: list[Synopsis] = [synopsis_of(cover, self._types) for cover in node.covers]
        self.places = np.zeros(0, np.int64)
        self.changing: Columns = self.nothing()
        self._changed: list[list[Vector]] = []  # the columns of the tuples that change each synopsis

    def change(self, batch: Batch, at: slice, places: Ints) -> None:
        """Find the changing tuples among those of a batch in `at`, which stand at `places`."""
        read = {(self.alias, name): vector.take(at) for name, vector in batch.items()}
        columns = {(self.alias, name): read[self.alias, name] for name in self._names}
        passing = meeting(self._filter, read, len(places))
        found = []
        for cover, synopsis in zip(self._covers, self.synopses, strict=True):
            own = meeting(cover.conditions, read, len(places)) & passing
            at_own = np.flatnonzero(own)
            found.append(at_own[synopsis.change(_taken(columns, at_own), len(at_own))])
        changed = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))
        self.places, self.changing = places[changed], _taken(columns, changed)
        self._changed = [list(_taken(columns, one).values()) for one in found]

    def keep(self) -> None:
        """Keep the changing tuples."""
        for synopsis, changed in zip(self.synopses, self._changed, strict=True):
            synopsis.keep(changed)
        self.places, self.changing, self._changed = np.zeros(0, np.int64), self.nothing(), []

    def tuples(self, *, changing: bool) -> tuple[Ints, Columns]:
        """The kept tuples, and with `changing` the changing ones besides: their places in the batch, -1 for
        those that were kept before, and their columns.
        """
        parts = [synopsis.kept() for synopsis in self.synopses]
        count = sum(map(len, self.synopses))
        if changing:
            parts.append(list(self.changing.values()))
        columns = [Vector.concat(one) for one in zip(*parts, strict=True)]
        before = np.full(count, -1, np.int64)
        return np.concatenate([before, self.places] if changing else [before]), self._named(columns)

    def nothing(self) -> dict[Name, Vector]:
        """The columns without tuples."""
        return self._named([Vector.from_list([], kind) for kind in self._types])

    def _named(self, vectors: Sequence[Vector]) -> dict[Name, Vector]:
        return {(self.alias, name): one for name, one in zip(self._names, vectors, strict=True)}

    def form(self) -> list[object]:
        """The form that a state must have."""
        columns = [[name, str(kind)] for name, kind in zip(self._names, self._types, strict=True)]
        return [self.stream, columns, [_cover_form(cover) for cover in self._covers]]

    def dumped(self) -> list[Any]:
        """The kept tuples of each synopsis, as JSON."""
        return [[len(one), [vector.to_list() for vector in one.kept()]] for one in self.synopses]

    def restore(self, dumped: Sequence[Any]) -> None:
        """Restore dumped tuples: each of them belongs into its synopsis again."""
        for synopsis, (size, values) in zip(self.synopses, dumped, strict=True):
            vectors = [Vector.from_list(v, kind) for v, kind in zip(values, self._types, strict=True)]
            synopsis.change(self._named(vectors), size)
            synopsis.keep(vectors)


def _cover_form(cover: nodes.Cover) -> list[object]:
    exprs = [*cover.equal, None, cover.value, None, *cover.unequal, None, *cover.conditions]
    most = [cover.most] if cover.most != 1 else []
    return [cover.least, *most, *(None if one is None else to_json(one) for one in exprs)]


def _taken(columns: Columns, at: Ints) -> dict[Name, Vector]:
    return {name: vector.take(at) for name, vector in columns.items()}

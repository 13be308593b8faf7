"""Batches of several streams, tuple by tuple in their order, without those that add nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.timeless.conjunct import Conjunct, Kept, Payload, Prepared, Values


@dataclass(frozen=True)
class Arrival:
    """One tuple: its place in the order of all, and its values."""

    place: int
    values: Values
    prepared: Sequence[Prepared]
    row: int

    def carried(self, alias: str) -> Values:
        """Its values as a payload."""
        return self.values

    def push(
        self, number: int, conjunct: Conjunct, payload: Callable[[str], Payload]
    ) -> Iterator[tuple[dict[str, Payload], int]]:
        """Push it to one of the alternatives, by its number."""
        return conjunct.push(self.prepared[number], self.row, payload)


@dataclass(frozen=True)
class _Part:
    """The tuples of one stream that matter: their places in the order of all, and their values."""

    places: NDArray[np.int64]
    values: list[Values]
    prepared: list[Prepared]


def arrivals(
    conjuncts: Sequence[Conjunct], kept: Kept, batches: Mapping[str, Batch], of: NDArray[np.int64]
) -> Iterator[Arrival]:
    """The tuples of batches that an alternative must be told of. `of` says, for each tuple in their order,
    the number of its batch, of which it is the next one.
    """
    parts = [
        _part(conjuncts, kept, stream, batch, np.flatnonzero(of == number))
        for number, (stream, batch) in enumerate(batches.items())
    ]
    places = np.concatenate([part.places for part in parts])
    owner = np.concatenate([np.full(len(part.places), i) for i, part in enumerate(parts)])
    row = np.concatenate([np.arange(len(part.places)) for part in parts])
    order = np.argsort(places)
    for place, number, at in zip(*(one[order].tolist() for one in (places, owner, row)), strict=True):
        part = parts[number]
        yield Arrival(place, part.values[at], part.prepared, at)


def _part(
    conjuncts: Sequence[Conjunct], kept: Kept, stream: str, batch: Batch, places: NDArray[np.int64]
) -> _Part:
    rows = len(places)
    moving = [one.moving(stream, batch, rows) for one in conjuncts]
    some = np.zeros(rows, np.bool_)
    for masks in moving:
        for mask in masks.values():
            some |= mask
    at = np.flatnonzero(some)
    if not len(at):
        return _Part(at, [], [])
    own = {name: batch[name].take(at) for name in kept.names[stream]}
    prepared = [
        one.prepare(own, {i: mask[at] for i, mask in masks.items()})
        for one, masks in zip(conjuncts, moving, strict=True)
    ]
    return _Part(places[at], kept.values(stream, own, len(at)), prepared)

"""Progress of a standing query: the places of each shard up to which it has taken readings, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis_joiner.core.records.cut_records import CutRecord
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class TakenCuts(NamedTuple):
    """The cuts of one shard and topic that a query has taken: number and part of the last one, the place
    where they begin, and place and event time up to which they have all readings.
    """

    number: int
    part: int
    since: int
    place: int
    time: int

    def have(self, places: Ints) -> Bools:
        """A mask of the tuples whose readings these cuts have, or will have. A tuple from before the cuts
        that is sent again late isn't among them.
        """
        return np.asarray(places >= self.since, np.bool_)

    def then(self, record: CutRecord) -> TakenCuts | None:
        """After another cut; None if it was taken before."""
        return None if record.place <= (self.number, self.part) else TakenCuts.of(record)

    @staticmethod
    def of(record: CutRecord) -> TakenCuts:
        """After a cut."""
        return TakenCuts(*record.place, record.since, *record.reached)

    def fits(self, record: CutRecord) -> bool:
        """True unless a commit of the shard has gone back: readings may be missing or counted twice then."""
        if record.place[0] < self.number:
            # An earlier owner of the shard may send a cut again.
            return record.reached[0] <= self.place and record.reached[1] <= self.time
        if record.place[0] == self.number:
            return record.reached == (self.place, self.time)
        return record.since > self.since or (record.before[0] >= self.place and record.before[1] >= self.time)


@dataclass
class QueryProgress:
    """Progress of a query; it is stored in `meta` as JSON under these names.

    `rows`: the number of rows so far. `taken`: by topic and shard, the greatest position that was taken.
    `advanced`: by topic, the last frontier that the query was advanced to. `latest`: the greatest event time
    that was taken. `cuts`: by topic and shard, the cuts that were taken; `disordered`:
    how many didn't follow the cut before.
    """

    rows: int = 0
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    advanced: dict[str, int] = field(default_factory=dict)
    latest: int = BEGINNING_OF_TIME
    cuts: dict[str, dict[str, TakenCuts]] = field(default_factory=dict)
    disordered: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fields. Those of cuts are written only if there were any: older releases don't know them."""
        found = dict(vars(self))
        if not self.cuts:
            del found["cuts"], found["disordered"]
            return found
        cuts = {t: {shard: list(taken) for shard, taken in of.items()} for t, of in self.cuts.items()}
        return {**found, "cuts": cuts}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> QueryProgress:
        """The progress that `to_json` has written."""
        cuts = {
            topic: {shard: TakenCuts(*taken) for shard, taken in shards.items()}
            for topic, shards in document.get("cuts", {}).items()
        }
        return QueryProgress(**{**document, "cuts": cuts})

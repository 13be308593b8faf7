"""Cuts, and the part of a shard's commit that is about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Cut(NamedTuple):
    """A cut sends all readings before `offset` with an event time before `time` that no earlier cut has sent;
    a `full` one those of every time. Its groups are divided into `parts`, and it counts under plan `version`.
    Its place is `born` plus its number. It keeps this place if its source is made anew, and so `born` of the
    shard changes.
    """

    number: int
    offset: int
    time: int
    full: bool
    parts: int
    version: int
    born: int

    @property
    def place(self) -> int:
        """Its place among the cuts of the shard."""
        return self.born + self.number


class ChainCommit(NamedTuple):
    """The cuts of one topic, as of a commit.

    The chain begins with the reading at `since`. All of its readings before `done` are sent. `number`,
    `offset` and `time` are those of the last cut that Kafka has; `pending` is the next one, which a restart
    sends again as it is.
    """

    since: int
    done: int
    number: int
    offset: int
    time: int
    pending: Cut | None = None


@dataclass(frozen=True, slots=True)
class CutsCommit:
    """The part of a commit about topics of partial aggregates.

    `decided`: all readings before this offset are published or dropped by the topics that carry tuples.
    `form`: the newest plan version that the run knew. `number`: that of the last cut on any topic. `chains`:
    by the number of the topic.
    """

    decided: int
    form: int
    number: int
    chains: Mapping[int, ChainCommit]

    def to_json(self) -> list[Any]:
        """Short, since a broker limits what it keeps with an offset: about 130 bytes for each topic."""
        chains = {str(topic): [*chain[:5], *(chain.pending or ())] for topic, chain in self.chains.items()}
        return [self.decided, self.form, self.number, chains]

    @staticmethod
    def from_json(document: Any) -> CutsCommit:
        """Raises ValueError or TypeError for anything that `to_json` doesn't write."""
        decided, form, number, chains = document
        return CutsCommit(
            int(decided), int(form), int(number), {int(t): _chain(*some) for t, some in chains.items()}
        )


def _chain(since: int, done: int, number: int, offset: int, time: int, *pending: Any) -> ChainCommit:
    return ChainCommit(since, done, number, offset, time, Cut(*pending) if pending else None)

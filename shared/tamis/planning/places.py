"""Which topic serves which source of which reader: those that have a place keep it, others choose in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.planning.entries import boxes
from tamis.planning.remembered import MOST, Latest, Remembered
from tamis.planning.sharing import Choice, How, Served, Topics
from tamis.planning.traffic import Footprint, Spread
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import EVERYTHING
from tamis.query.model import StreamDef

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)

# Clauses beyond which nobody asks whether a topic serves a filter as it is: it takes more than milliseconds.
MOST_CLAUSES = 1_000


@dataclass(frozen=True)
class Wish:
    """A source of a reader: the tuples of a stream that pass `filter` (over bare column names), by key.

    `whole`: without omission. `new`: the reader comes with this plan. One that doesn't and has no place is
    from before places were remembered, when each stream and key had one topic.
    """

    reader: str
    alias: str
    key: TopicKey
    filter: Expr | None
    subscriber: bool
    whole: bool
    new: bool


_FOOTPRINTS = Remembered[Footprint](MOST)
_UNIONS = Latest[Footprint](MOST)


class Places:
    """Numbers of topics, and who is where. `numbers`: of each stream and key, those that ever were."""

    def __init__(
        self,
        streams: Mapping[str, StreamDef],
        numbers: Mapping[TopicKey, tuple[int, ...]],
        placed: Mapping[str, Mapping[str, int]],
    ) -> None:
        self._streams = streams
        self._before = placed
        self.numbers = dict(numbers)
        self.placed: dict[str, dict[str, int]] = {}
        self.choices: dict[str, dict[str, Choice]] = {}
        self._seated: dict[TopicKey, dict[int, list[Wish]]] = {}

    def seat(self, wishes: Iterable[Wish]) -> None:
        """Give each its place, those first that have one."""
        waiting = []
        for wish in wishes:
            known = self._before.get(wish.reader, {}).get(wish.alias)
            if known is None and not wish.new:
                known = min(self.numbers.get(wish.key, ()), default=None)
            if known is None:
                waiting.append(wish)
            else:
                self._sit(wish, known)
        for wish in waiting:
            choice = self._choose(wish)
            self._sit(wish, choice.number)
            self.choices.setdefault(wish.reader, {})[wish.alias] = choice

    def _sit(self, wish: Wish, number: int) -> None:
        self.placed.setdefault(wish.reader, {})[wish.alias] = number
        self._seated.setdefault(wish.key, {}).setdefault(number, []).append(wish)

    def _choose(self, wish: Wish) -> Choice:
        need = self._footprint(wish)
        seated = self._seated.get(wish.key, {})
        served = [self._served(wish.key, number, readers) for number, readers in sorted(seated.items())]
        topic, share = Topics(served, need.lower.shape[1]).choose(need, wish.subscriber)
        if topic is None:
            return Choice(self._vacant(wish.key), "own", 0.0, need.share, need.share)
        fits = _as_it_is(wish.filter, [one.filter for one in seated[topic.number] if one.whole])
        how: How = "as it is" if fits else "widened"
        return Choice(topic.number, how, topic.passes.share, share, need.share)

    def _served(self, key: TopicKey, number: int, readers: list[Wish]) -> Served:
        parts = tuple(map(self._footprint, readers))
        return Served(
            number,
            _UNIONS.get((key, number), parts, lambda: Footprint.union(parts)),
            not all(one.subscriber for one in readers),
            sum(one.subscriber for one in readers),
        )

    def _footprint(self, wish: Wish) -> Footprint:
        stream = self._streams[wish.key[0]]
        return _FOOTPRINTS.get((stream, wish.filter), None, lambda: Spread(stream).footprint(wish.filter))

    def _vacant(self, key: TopicKey) -> int:
        """A topic that has no reader any more, or a number that the stream never had."""
        mine = self.numbers.get(key, ())
        vacant = [number for number in mine if number not in self._seated.get(key, {})]
        if vacant:
            return min(vacant)
        used = [n for (name, _), numbers in self.numbers.items() for n in numbers if name == key[0]]
        number = max(used, default=0) + 1
        self.numbers[key] = (*mine, number)
        return number


def _as_it_is(filter_: Expr | None, served: list[Expr | None]) -> bool:
    """Whether all that passes the filter passes one of those that are served whole, for all that is known."""
    if None in served or filter_ in served:
        return True
    wanted = Predicate((EVERYTHING,), {}) if filter_ is None else boxes(filter_)
    known = [found for one in served if one is not None and (found := boxes(one)) is not None]
    union = [box for found in known for box in found.boxes]
    if wanted is None or len(union) > MOST_CLAUSES:
        return False
    types = {name: kind for found in known for name, kind in found.types.items()}
    try:
        return implies(wanted, Predicate(tuple(union), types))
    except RefusedError:
        return False

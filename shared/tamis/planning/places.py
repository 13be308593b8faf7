"""Which topic serves which source of which reader: those that have a place keep it, others choose in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr
from tamis.messaging.topics import outside_topic, stream_topic
from tamis.planning.entries import boxes
from tamis.planning.sharing import Choice, How, Served, Topics
from tamis.planning.traffic import Footprint, Spread
from tamis.predicates import Predicate, implies
from tamis.predicates.boxes import EVERYTHING

TopicKey = tuple[str, tuple[str, ...]]  # (stream, partition key)
Source = tuple[str, str]  # (reader, alias)
Topic = tuple[TopicKey, int]

# Clauses beyond which nobody asks whether a topic serves a filter as it is: it takes more than milliseconds.
MOST_CLAUSES = 1_000


@dataclass(frozen=True)
class Wish:
    """A source of a reader: the tuples of a stream that pass `filter` (over bare column names), by key.

    `whole`: without omission. `made`: the plan version with which the reader came.
    """

    reader: str
    alias: str
    key: TopicKey
    filter: Expr | None
    subscriber: bool
    whole: bool
    made: int


class Places:
    """Who is where. What was found for topics whose readers are as they were is found again: a change costs
    what it touches.

    `seated`: of each topic its wishes; `numbers`: of each stream and key, those that ever were; `outside`: of
    each stream, those that the joiner doesn't find; `touched`: topics whose readers aren't those before.
    """

    def __init__(
        self,
        version: int,
        spreads: Mapping[str, Spread],
        numbers: Mapping[TopicKey, tuple[int, ...]],
        outside: Mapping[str, frozenset[int]],
        before: Places | None = None,
    ) -> None:
        """Those of plan `version`. `before` must rest on the same `spreads`."""
        self._version = version
        self._spreads = spreads
        self.numbers = dict(numbers)
        self.outside = dict(outside)
        self.placed: dict[str, dict[str, int]] = {}
        self.choices: dict[str, dict[str, Choice]] = {}
        self.touched: set[Topic] = set()
        known = before.seated if before else {}
        self.seated: dict[TopicKey, dict[int, dict[Source, Wish]]] = {
            key: dict(numbered) for key, numbered in known.items()
        }
        self._served: dict[Topic, Served] = dict(before._served) if before else {}

    def name(self, key: TopicKey, number: int) -> str:
        """A topic's name."""
        named = outside_topic if number in self.outside.get(key[0], ()) else stream_topic
        return named(key[0], number)

    def leave(self, wishes: Iterable[Wish], numbers: Mapping[str, int]) -> None:
        """Take away a reader that had places before."""
        for wish in wishes:
            topic = wish.key, numbers[wish.alias]
            del self._mine(topic)[wish.reader, wish.alias]

    def seat(self, wishes: Iterable[Wish], placed: Mapping[str, Mapping[str, int]]) -> None:
        """Give each its place, those first that have one."""
        waiting = []
        for wish in wishes:
            known = placed[wish.reader].get(wish.alias)
            if known is None and wish.made != self._version:
                # From before places were remembered, when each stream and key had one topic.
                known = min(set(self.numbers.get(wish.key, ())) - self._hidden(wish), default=None)
            if known is None:
                waiting.append(wish)
            else:
                self._sit(wish, known)
        self._sort()
        for wish in waiting:
            choice = self._choose(wish)
            self._sit(wish, choice.number)
            self.choices.setdefault(wish.reader, {})[wish.alias] = choice
        self._sort()

    def _sort(self) -> None:
        """Nothing may rest on the order in which readers came: a start reads them all at once."""
        for topic in self.touched:
            key, number = topic
            wishes = self.seated[key].get(number)
            if not wishes:
                self.seated[key].pop(number, None)
                self._served.pop(topic, None)
                continue
            ordered = dict(sorted(wishes.items(), key=lambda pair: (pair[1].made, *pair[0])))
            if list(ordered) != list(wishes):
                self.seated[key][number] = ordered
                self._served.pop(topic, None)

    def _sit(self, wish: Wish, number: int) -> None:
        self.placed.setdefault(wish.reader, {})[wish.alias] = number
        self._mine((wish.key, number))[wish.reader, wish.alias] = wish

    def _mine(self, topic: Topic) -> dict[Source, Wish]:
        """The wishes of a topic, to be changed: those before keep theirs."""
        key, number = topic
        numbered = self.seated.setdefault(key, {})
        if topic not in self.touched:
            self.touched.add(topic)
            numbered[number] = dict(numbered.get(number, ()))
        self._served.pop(topic, None)
        return numbered.setdefault(number, {})

    def _choose(self, wish: Wish) -> Choice:
        need, basis = self._footprint(wish), self._spreads[wish.key[0]].basis(wish.filter)
        seated = self.seated.get(wish.key, {})
        numbers = sorted(seated.keys() - self._hidden(wish))
        served = [self._serving(wish.key, number) for number in numbers]
        topic, share = Topics(served, need.lower.shape[1]).choose(need, wish.subscriber)
        if topic is None:
            return Choice(self._vacant(wish), "own", 0.0, need.share, need.share, basis)
        fits = _as_it_is(wish.filter, [one.filter for one in seated[topic.number].values() if one.whole])
        how: How = "as it is" if fits else "widened"
        return Choice(topic.number, how, topic.passes.share, share, need.share, basis)

    def _hidden(self, wish: Wish) -> frozenset[int]:
        """The topics from which a reader can't be served."""
        return frozenset() if wish.subscriber else self.outside.get(wish.key[0], frozenset())

    def _serving(self, key: TopicKey, number: int) -> Served:
        found = self._served.get((key, number))
        if found is None:
            wishes = self.seated[key][number].values()
            outside = sum(one.subscriber for one in wishes)
            passes = Footprint.union(map(self._footprint, wishes))
            found = self._served[key, number] = Served(number, passes, outside < len(wishes), outside)
        return found

    def _footprint(self, wish: Wish) -> Footprint:
        return self._spreads[wish.key[0]].footprint(wish.filter)

    def _vacant(self, wish: Wish) -> int:
        """A topic that has no reader any more, or a number that the stream never had."""
        (stream, _), mine = wish.key, self.numbers.get(wish.key, ())
        hidden = self.outside.get(stream, frozenset())
        vacant = [
            number
            for number in mine
            if number not in self.seated.get(wish.key, {}) and (number in hidden) is wish.subscriber
        ]
        if vacant:
            return min(vacant)
        used = [n for (name, _), numbers in self.numbers.items() for n in numbers if name == stream]
        number = max(used, default=0) + 1
        self.numbers[wish.key] = (*mine, number)
        if wish.subscriber:
            self.outside[stream] = hidden | {number}
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

"""Which topic serves which source of which reader: those that have a place keep it, others choose in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tamis.messaging.topics import outside_topic, stream_topic
from tamis.planning.crowds import Crowd, TopicKey, Wish
from tamis.planning.sharing import Choice, How, Topics
from tamis.planning.traffic import Footprint, Spread

Source = tuple[str, str]  # (reader, alias)
Topic = tuple[TopicKey, int]


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
        """Those of plan `version`. What `before` rests on other `spreads` is estimated anew."""
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
        self._crowds: dict[Topic, Crowd] = {}
        self._late: set[Topic] = set()  # topics whose crowds aren't as they are now
        self._unsorted: set[Topic] = set()
        if before is not None:
            known_spreads = before._spreads
            same = {name for name, spread in spreads.items() if known_spreads.get(name) is spread}
            self._crowds = {topic: crowd for topic, crowd in before._crowds.items() if topic[0][0] in same}
            self._late = {topic for topic in before._late if topic in self._crowds}

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
        for key, number in self.touched:
            if not self.seated[key].get(number):
                self.seated[key].pop(number, None)
                self._crowds.pop((key, number), None)
        for key, number in self._unsorted:
            ordered = sorted(self.seated[key][number].items(), key=lambda pair: pair[1].place)
            self.seated[key][number] = dict(ordered)
        self._unsorted = set()

    def _sit(self, wish: Wish, number: int) -> None:
        self.placed.setdefault(wish.reader, {})[wish.alias] = number
        mine = self._mine((wish.key, number))
        last = next(reversed(mine.values()), wish)
        if wish.place < last.place:
            self._unsorted.add((wish.key, number))
        mine[wish.reader, wish.alias] = wish

    def _mine(self, topic: Topic) -> dict[Source, Wish]:
        """The wishes of a topic, to be changed: those before keep theirs."""
        key, number = topic
        numbered = self.seated.setdefault(key, {})
        if topic not in self.touched:
            self.touched.add(topic)
            numbered[number] = dict(numbered.get(number, ()))
        self._late.add(topic)
        return numbered.setdefault(number, {})

    def _choose(self, wish: Wish) -> Choice:
        need, basis = self._footprint(wish), self._spreads[wish.key[0]].basis(wish.filter)
        seated = self.seated.get(wish.key, {})
        numbers = sorted(seated.keys() - self._hidden(wish))
        served = [self._crowd((wish.key, number)).served for number in numbers]
        topic, share = Topics(served, need.lower.shape[1]).choose(need, wish.subscriber)
        if topic is None:
            return Choice(self._vacant(wish), "own", 0.0, need.share, basis)
        how: How = "as it is" if self._crowds[wish.key, topic.number].has(wish.filter) else "widened"
        return Choice(topic.number, how, topic.passes.share, share, basis)

    def kept(self, wish: Wish, number: int) -> Choice:
        """The place that a reader has."""
        share = self._crowd((wish.key, number)).served.passes.share
        return Choice(number, "kept", share, share, self._spreads[wish.key[0]].basis(wish.filter))

    def _hidden(self, wish: Wish) -> frozenset[int]:
        """The topics from which a reader can't be served."""
        return frozenset() if wish.subscriber else self.outside.get(wish.key[0], frozenset())

    def _crowd(self, topic: Topic) -> Crowd:
        key, number = topic
        known = self._crowds.get(topic)
        if known is not None and topic not in self._late:
            return known
        spread = self._spreads[key[0]]
        crowd = known or Crowd.nobody(number, spread.dimensions)
        crowd = self._crowds[topic] = crowd.now(tuple(self.seated[key][number].values()), spread.footprint)
        self._late.discard(topic)
        return crowd

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

"""The fence of a shard, which shuts out what its earlier owners still send (docs/cuts.md, rule 16)."""

from __future__ import annotations

from collections.abc import Collection


class Fence:
    """Records before cuts take the place of tuples: behind them, the joiner drops all tuples and progress of
    the shard with a smaller number.

    A fence is drawn for a commit, and sent when that is durable. It stands when Kafka has it. Earlier owners
    have read no more than the source has then, so cuts may begin when all of that is read.
    """

    def __init__(self, number: int) -> None:
        """`number`: that of the last commit; 0 without a fence."""
        self.number = number
        self._drawn: int | None = None  # of a commit that isn't durable yet
        self._topics: frozenset[str] = frozenset()  # of the last fence of this run
        self._unsafe: set[int] = set()
        self._stands = self._passed = False
        self.asked = False  # the source was asked where it ends, since the fence stood

    def draw(self, topics: Collection[str], now: int) -> None:
        """Draw a fence for the next commit, unless the last one is for all of these topics. `now`: by the
        clock, in microseconds; so the number rises even if the commit is lost.
        """
        if self._drawn is None and not self._topics.issuperset(topics):
            self._drawn = max(self.number + 1, now)
            self._topics, self._unsafe = frozenset(topics), set()
            self._stands = self._passed = self.asked = False

    @property
    def committed(self) -> int:
        """The number for the next commit."""
        return self.number if self._drawn is None else self._drawn

    def made_durable(self) -> frozenset[str]:
        """The commit is durable. Returns the topics to which its fence must be sent now."""
        if self._drawn is None:
            return frozenset()
        self.number, self._drawn = self._drawn, None
        return self._topics

    def sent_as(self, tokens: Collection[int]) -> None:
        """The records of the fence have these tokens."""
        self._unsafe = set(tokens)

    def safe(self, token: int) -> None:
        """A record can't be lost any more."""
        if token in self._unsafe:
            self._unsafe.remove(token)
            self._stands = not self._unsafe

    def __bool__(self) -> bool:
        """True while some of its records aren't safe."""
        return bool(self._unsafe)

    def carries(self, token: int) -> bool:
        """True if this is a record of the fence that isn't safe yet."""
        return token in self._unsafe

    def asks_for_end(self) -> bool:
        """True once, when the fence stands: the source must be asked where it ends."""
        if not self._stands or self.asked:
            return False
        self.asked = True
        return True

    def source_read(self) -> None:
        """All was read up to the end that was asked for."""
        self._passed = self.asked

    def passed(self, topics: Collection[str]) -> bool:
        """True if cuts may take the place of tuples on these topics."""
        return self._passed and self._topics.issuperset(topics)

    def cuts_begin(self) -> None:
        """Cuts have taken the place of tuples on all topics. Others that carry tuples need another fence."""
        self._topics, self._passed = frozenset(), False

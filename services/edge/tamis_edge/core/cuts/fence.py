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
        self._stands = self._asked = False
        self.passed = False  # all was read that the source had when the fence stood

    def draw(self, topics: Collection[str], born: int) -> None:
        """Draw a fence for the next commit, unless this run has one for all of these topics. `born`: as in
        `Commit`; so the number rises even if the commit is lost.
        """
        if self._drawn is None and not self._topics.issuperset(topics):
            self._drawn = max(self.number, born) + 1
            self._topics = frozenset(topics)
            self._stands = self._asked = self.passed = False

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

    def carries(self, token: int) -> bool:
        """True if this is a record of the fence that isn't safe yet."""
        return token in self._unsafe

    def asks_for_end(self) -> bool:
        """True once, when the fence stands: the source must be asked anew where it ends."""
        if not self._stands or self._asked:
            return False
        self._asked = True
        return True

    def source_read(self) -> None:
        """All was read that the source has, by an answer from after `asks_for_end`."""
        self.passed = self.passed or self._asked

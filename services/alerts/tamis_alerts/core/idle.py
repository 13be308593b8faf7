"""Which keys' told events may be forgotten."""

from __future__ import annotations

from collections.abc import Container, Iterable


class Idle:
    """Since when keys have had no state.

    `seconds`: how long until they may be forgotten. It has to be longer than an event can wait for its
    notification, or an offset for its commit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[bytes, float] = {}

    def over(self, told: Iterable[bytes], known: Container[bytes], now: float) -> list[bytes]:
        """The keys among `told` that have long not been among `known`. `now`: seconds on a clock of this
        process: what came before its start doesn't count.

        A key's state goes when the frontier has passed all that a replay of its alarms can bring again.
        """
        self._since = {key: self._since.get(key, now) for key in told if key not in known}
        return [key for key, since in self._since.items() if now - since >= self._seconds]

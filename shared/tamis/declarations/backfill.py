"""Backfill streams: the readings of a raw stream from the beginning of its sources, for one alert.

An alert WITH (from = …) doesn't read the shared topics of its streams, which have what edges have read since
some other alert was created. Each of its streams has a *backfill stream* instead, with topics and shards of
its own. Edges read the sources of the raw stream a second time for it, from their beginning, and then simply
go on with new readings. So there is no boundary between history and new readings at which some could be
missed or counted twice.

The name of a backfill stream says everything about it: the raw stream, the plan version that made the alert,
and the time before which its readings are left out. No user can choose such a name, because names of streams
have no hyphens.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

# What `from` says: the beginning of the sources, or an event time in microseconds.
From = Literal["earliest"] | int

# A topic may have 249 characters. The prefix and the number of a topic, a version and a time need the rest.
LONGEST = 150

_NAME = re.compile(
    r"(?P<stream>[A-Za-z_][A-Za-z0-9_]*)-backfill-(?P<version>[1-9][0-9]*)(?:-from-(?P<begin>m?[0-9]+))?"
)


class Backfill(NamedTuple):
    """A backfill stream: its raw stream, the plan version of its alert, and the least event time of its
    readings in microseconds; None if all readings count.
    """

    stream: str
    version: int
    begin: int | None = None

    @property
    def name(self) -> str:
        """The name of the backfill stream.

        >>> Backfill("air", 17).name, Backfill("air", 17, 5).name, Backfill("air", 17, -5).name
        ('air-backfill-17', 'air-backfill-17-from-5', 'air-backfill-17-from-m5')
        """
        begin = "" if self.begin is None else f"-from-{self.begin}".replace("--", "-m")
        return f"{self.stream}-backfill-{self.version}{begin}"

    @staticmethod
    def of(stream: str, version: int, since: From) -> Backfill:
        """The backfill stream of a raw stream for an alert of a plan version."""
        return Backfill(stream, version, None if since == "earliest" else since)

    @staticmethod
    def named(name: str) -> Backfill | None:
        """The backfill stream of that name; None for the name of any other stream.

        >>> Backfill.named("air-backfill-17-from-m5"), Backfill.named("air")
        (Backfill(stream='air', version=17, begin=-5), None)
        """
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        begin = found["begin"]
        at = None if begin is None else int(begin.replace("m", "-"))
        return Backfill(found["stream"], int(found["version"]), at)


def raw_name(name: str) -> str:
    """The raw stream whose readings a stream has: that of a backfill stream, or the stream itself.

    >>> raw_name("air-backfill-17"), raw_name("air")
    ('air', 'air')
    """
    found = Backfill.named(name)
    return name if found is None else found.stream


def shard_of(name: str, shard: str) -> str:
    """The shard of a backfill stream that reads the same source as a shard of its raw stream.

    >>> shard_of("air-backfill-17", "air:readings.air/0")
    'air-backfill-17:readings.air/0'
    """
    return name + shard[len(raw_name(name)) :]

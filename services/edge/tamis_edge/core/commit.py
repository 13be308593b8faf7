"""The durable commit of a shard: the state that survives its edge."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from tamis.errors import InputError
from tamis.operators.cuts.cut import CutsCommit


@dataclass(frozen=True, slots=True)
class WatchedCommit:
    """The part of a commit about the watched streams of the shard's stream.

    For their sake readings that are decided are read again, so that the series of all keys are as before.

    `decided`: all readings before this offset are published or dropped by the topics of the stream itself.
    `floor`: no reading before the commit's `done` has a greater event time. Series consist of readings from
    this event time on. `time` and `offset`: on watched streams, readings with an event time before `time`, or
    with this event time and an offset before `offset`, are published or dropped. `number`: the number of the
    first reading that is neither, by event time.
    """

    decided: int
    floor: int
    time: int
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class History:
    """The history that a shard of a backfill stream has found: the first offset that its source had, and the
    least event time of all readings so far; None if the stream has no event time.
    """

    first_offset: int
    earliest: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A shard's durable commit (protocol.md, rule 3). The defaults are those of a shard that was never
    read.

    All readings before the offset `done` are published or dropped, and a restart reads from there. `high`:
    greatest event time read, microseconds, -1 before the first tuple. `version`: the plan version under which
    the shard works, 0 before the first. `activation`: the event time from which that version applies.

    `born`: wall clock, microseconds, when the shard was first read. The position of a counted tuple is `born`
    plus the tuple's offset. Therefore positions increase even if the commit is lost and the source is read
    again from its beginning, and the tuples are not taken for duplicates. `read`: the offset up to which the
    shard had read. Readings from `done` to `read` are delivered again after a restart.
    """

    done: int = 0
    high: int = -1
    version: int = 0
    activation: int = 0
    born: int = 0
    read: int = 0
    watched: WatchedCommit | None = None  # None if no watched stream needs more than the rest
    history: History | None = None  # only of a backfill stream
    cuts: CutsCommit | None = None  # None without topics of partial aggregates
    fence: int = 0  # the number of the last fence

    @property
    def decided(self) -> int:
        """All readings before this offset are published or dropped by the topics of the stream itself."""
        if self.watched is not None:
            return self.watched.decided
        return self.done if self.cuts is None else self.cuts.decided

    @property
    def form(self) -> int:
        """The newest plan that the shard's run knew, if partial aggregates depend on it."""
        return self.version if self.cuts is None else max(self.version, self.cuts.form)

    @property
    def unread(self) -> bool:
        """True if the shard never had a reading."""
        return self.high == -1 and self.done == self.read == 0

    def to_metadata(self) -> str:
        """The text that is stored with a Kafka offset; `done` is the offset itself.

        >>> Commit(7, 1_700_000, 3, 1_600_000, 1_500_000, 9).to_metadata()
        '{"high":1700000,"version":3,"activation":1600000,"born":1500000,"read":9}'
        """
        fields = asdict(self)
        del fields["done"]
        fields["cuts"] = self.cuts and self.cuts.to_json()
        for name in ("watched", "history", "cuts", "fence"):
            if not fields[name]:
                del fields[name]
        return orjson.dumps(fields).decode()

    @staticmethod
    def from_metadata(done: int, metadata: str | None) -> Commit:
        """The commit of an offset and its metadata. An offset without metadata was committed by another
        program.

        Raises:
            InputError: the metadata isn't an edge's.
        """
        if not metadata:
            return Commit(done)
        try:
            fields = orjson.loads(metadata)
            high, version, activation = (int(fields[name]) for name in ("high", "version", "activation"))
            # Earlier releases did not write these fields.
            born, read = (int(fields.get(name, 0)) for name in ("born", "read"))
            watched = WatchedCommit(**fields["watched"]) if "watched" in fields else None
            history = History(**fields["history"]) if "history" in fields else None
            cuts = CutsCommit.from_json(fields["cuts"]) if "cuts" in fields else None
            fence = int(fields.get("fence", 0))
            return Commit(done, high, version, activation, born, read, watched, history, cuts, fence)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"the metadata of the committed offset {done} was not written by an edge: {error!r}",
                hint="give the source a consumer group of its own",
            ) from error

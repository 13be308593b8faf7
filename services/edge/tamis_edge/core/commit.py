"""What of a shard survives its edge."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from tamis.errors import InputError


@dataclass(frozen=True, slots=True)
class Commit:
    """A shard's durable commit (protocol.md, rule 3); the defaults are a shard that was never read.

    Every offset before `done` is done with. `high`: greatest event time read, microseconds, -1 before the
    first tuple. `version`: the plan version obeyed, 0 before the first; `activation`: the event time from
    which it holds. `born`: wall clock, microseconds, at which the shard was first read; tuples that are
    counted have it plus their offset as their place. So places rise even where all of this is lost and the
    source is read anew, and what comes then is not taken for doubles.
    """

    done: int = 0
    high: int = -1
    version: int = 0
    activation: int = 0
    born: int = 0

    def to_metadata(self) -> str:
        """The text that travels with a Kafka offset; `done` is the offset itself.

        >>> Commit(7, 1_700_000, 3, 1_600_000, 1_500_000).to_metadata()
        '{"high":1700000,"version":3,"activation":1600000,"born":1500000}'
        """
        fields = asdict(self)
        del fields["done"]
        return orjson.dumps(fields).decode()

    @staticmethod
    def from_metadata(done: int, metadata: str | None) -> Commit:
        """The commit of an offset and its metadata; without metadata it was not an edge that wrote it.

        Raises:
            InputError: the metadata isn't an edge's.
        """
        if not metadata:
            return Commit(done)
        try:
            fields = orjson.loads(metadata)
            high, version, activation = (int(fields[name]) for name in ("high", "version", "activation"))
            return Commit(done, high, version, activation, int(fields.get("born", 0)))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"the committed offset {done} carries foreign metadata: {error!r}",
                hint="give the source a consumer group of its own",
            ) from error

"""Readings of one shard into its run: tuples, and dead letters for the readings that can't be used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from tamis.declarations.backfill import Backfill
from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.plan.model import Plan, StreamColumn, StreamPlan
from tamis.recordings.json_values import Offence
from tamis.recordings.times import implausible
from tamis.telemetry.logs import get_logger
from tamis.telemetry.metrics import Metrics
from tamis_edge.core.rows import Batch
from tamis_edge.core.sampling import Sampler
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.shards.doubts import Doubts, read_columns
from tamis_edge.sources.base import Delivery, Payloads, SourceShard

_log = get_logger("edge.shard")

LOG_AGAIN = 60_000_000  # microseconds between log lines about readings ahead of the clock


class Intake:
    """Decodes deliveries of one shard by the plan. `now` is wall clock in microseconds."""

    def __init__(self, source: SourceShard, edge: str, metrics: Metrics) -> None:
        self._source, self._edge, self._metrics = source, edge, metrics
        self.decoder: Decoder | None = None
        self.sampler: Sampler | None = None
        self._new: tuple[StreamColumn, ...] = ()
        self._doubts = Doubts()
        self._read: frozenset[str] = frozenset()  # the columns that should have values
        self._empty: list[str] = []  # those without a value that were logged
        self._ahead_logged_at = -LOG_AGAIN

    def decode_for(self, plan: Plan, stream: StreamPlan, version: int) -> Decoder:
        """The decoder for a stream as it was under a plan version. It is the one of before if the stream is
        the same. Columns that the stream didn't have yet are NULL.
        """
        then = stream.columns_under(version)
        known = {column.name for column in then}
        self._read = read_columns(plan, stream, self._source.fields)
        self._new = tuple(column for column in stream.columns if column.name not in known)
        stream = stream if then == stream.columns else replace(stream, columns=then)
        if self.decoder is None or self.decoder.stream != stream:
            self.decoder = Decoder(stream, self._source.fields, replayed=self._source.replayed)
            self.sampler = Sampler(stream, np.random.default_rng())
        return self.decoder

    def take(self, run: ShardRun, delivery: Delivery, label: str, now: int) -> None:
        """Give a delivery to the run. `label`: the stream as metrics name it."""
        assert self.decoder is not None
        assert self.sampler is not None
        decoded = delivery.decode(self.decoder, now)
        for offence in decoded.offences:
            self._reject(run, delivery, offence, self._source.stream)
        self._log_ahead(decoded, len(delivery.offsets), now)
        if self.decoder.stream.origin is not None:
            decoded = self._history(run, delivery, decoded)
        rows = decoded.rows
        if len(rows):
            self._doubt(decoded, label, now)
            self.sampler.take(decoded.columns, len(rows))
            offsets, arrivals = delivery.offsets[rows], delivery.arrivals[rows]
            columns = decoded.columns | {c.name: Vector.nulls(c.type, len(rows)) for c in self._new}
            run.take(Batch(columns, decoded.times, offsets, arrivals), now)
        run.skip(int(delivery.offsets[-1]) + 1)

    def _history(self, run: ShardRun, delivery: Delivery, decoded: Decoded) -> Decoded:
        """The readings of a backfill stream that count, after all of them are noted as its history."""
        assert self.decoder is not None
        stream = self.decoder.stream
        timed = stream.time is not None
        run.note_history(int(delivery.offsets[0]), decoded.times if timed else decoded.times[:0])
        if stream.begin is None:
            return decoded
        at = np.flatnonzero(decoded.times >= stream.begin)
        columns = {name: column.take(at) for name, column in decoded.columns.items()}
        return replace(decoded, rows=decoded.rows[at], columns=columns, times=decoded.times[at])

    def reject(self, run: ShardRun, delivery: Delivery) -> None:
        """Send a whole delivery to the dead letters, because the plan doesn't have its stream."""
        for row in range(len(delivery.offsets)):
            stream = self._source.stream
            if isinstance(delivery, Payloads) and delivery.streams:
                stream = delivery.streams[row]
            error = f"no stream {stream!r:.250} in the plan"
            self._reject(run, delivery, Offence(row, Reason.UNKNOWN_STREAM, error), f"{stream:.250}")

    def _reject(self, run: ShardRun, delivery: Delivery, offence: Offence, stream: str) -> None:
        """Send one reading to the dead letters. `stream`: as its sender named it."""
        source, row, reason = self._source, offence.row, offence.reason
        offset = int(delivery.offsets[row])
        if run.is_decided(offset) or Backfill.named(source.stream) is not None:
            # A backfill stream reads what its raw stream reads, too, which makes the dead letter.
            return
        payload = delivery.payload(row)
        place = source.topic, source.partition, offset
        letter = DeadLetter(payload, "edge", *place, reason, offence.error, self._edge, stream)
        run.add_dead_letter(letter, int(delivery.arrivals[row]) // 1000)
        self._metrics.inc("tamis_dead_letters_total", service="edge", reason=reason.value)

    def _log_ahead(self, decoded: Decoded, count: int, now: int) -> None:
        """Log readings that are too far ahead of the clock, at most once a minute. The clock itself may be
        wrong.
        """
        found = [one for one in decoded.offences if one.reason is Reason.AHEAD_OF_CLOCK]
        if not found or now - self._ahead_logged_at < LOG_AGAIN:
            return
        self._ahead_logged_at = now
        _log.error(
            "readings are ahead of this edge's clock: they are dead letters, and the watermark ignores them",
            shard=self._source.name,
            readings=f"{len(found)} of {count}",
            first=found[0].error,
            clock=datetime.fromtimestamp(now / 1e6, UTC).isoformat(),
            hint="compare the clocks of this machine and of the sender, and the time zone of its times"
            if len(found) == count
            else "correct their sender's clock",
        )

    def doubts(self, now: int) -> list[str]:
        """Doubts about the newest readings, for people."""
        if self.decoder is None:
            return []
        paths = {name: self.decoder.path(name).text for name in self._doubts.empty}
        return self._doubts.told(paths, now, self._source.fields.fields)

    def _doubt(self, decoded: Decoded, label: str, now: int) -> None:
        """Count event times before 2000 or after 2100, and log doubts about the readings when they begin."""
        assert self.decoder is not None
        times = decoded.times if self.decoder.stream.time is not None else decoded.times[:0]
        if count := int(np.count_nonzero(implausible(times))):
            self._metrics.inc("tamis_edge_doubtful_times_total", count, edge=self._edge, stream=label)
        found = self._doubts.take(decoded.columns, self._read, times, self.decoder.unit, now)
        if found is not None:
            reason, hint = found
            _log.warning("event times are implausible", shard=self._source.name, reason=reason, hint=hint)
        before, self._empty = self._empty, self._doubts.empty
        if set(self._empty) - set(before):
            _log.warning(
                "columns have no value in any of the last readings",
                shard=self._source.name,
                columns=", ".join(self._empty),
                fields=", ".join(self.decoder.path(name).text for name in self._empty),
                hint="compare `map` of the source with the fields of the readings",
            )

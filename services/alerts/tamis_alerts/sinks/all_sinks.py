"""All sinks: the log and the configured sinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tamis.messaging.heartbeats import SinkState
from tamis.settings import KafkaSettings
from tamis.telemetry import Metrics
from tamis_alerts.silence_view import SilenceView
from tamis_alerts.sink_settings import LOG, Sink
from tamis_alerts.sinks.delivery import DEFAULTS, LogDelivery, SharedSettings, SinkDelivery
from tamis_alerts.sinks.group_offsets import offsets_of_first_version
from tamis_alerts.sinks.silencing import Silencing
from tamis_alerts.sinks.sink_queue import SinkQueue


class Sinks:
    """The queues of all sinks. No queue waits for another."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        kafka: KafkaSettings,
        metrics: Metrics,
        shared: SharedSettings = DEFAULTS,
        silences: SilenceView | None = None,
    ) -> None:
        self._kafka = kafka
        self._queues = [SinkQueue(LOG, LogDelivery, kafka, metrics)]
        for sink in sinks:
            make = partial(SinkDelivery, sink, kafka, shared)
            silencing = Silencing(sink.name, silences if sink.silences == "obey" else None, kafka, metrics)
            self._queues.append(SinkQueue(sink.name, make, kafka, metrics, silencing))

    def register(self) -> None:
        """Register every new sink, before this process writes its first episode. Raises UnavailableError.

        The first version of Tamis delivered to all sinks in the group of the service itself. After an upgrade
        the sinks continue where that group stopped. The log is registered last: if a start fails halfway, the
        next one still finds that it is the first.
        """
        log, *others = self._queues
        starts = {} if log.registered else offsets_of_first_version(self._kafka)
        for queue in (*others, log):
            queue.register(starts)

    def start(self) -> None:
        """Begin to deliver."""
        for queue in self._queues:
            queue.start()

    def check(self) -> None:
        """Raises DeadThreadError if the thread of a queue has ended by an error."""
        for queue in self._queues:
            queue.check()

    def stop(self) -> None:
        """End all queues at the same time. Events that aren't delivered remain in Kafka."""
        for queue in self._queues:
            queue.ask_to_stop()
        for queue in self._queues:
            queue.stop()

    @property
    def states(self) -> dict[str, SinkState]:
        """The notifications that wait for each sink, in the partitions of this worker."""
        return {queue.name: queue.state for queue in self._queues}

    @property
    def trouble(self) -> str:
        """The sinks whose notifications have waited for long, with the time."""
        return "; ".join(queue.trouble for queue in self._queues if queue.trouble)

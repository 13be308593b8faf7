"""State of sending again: what happens to the records in flight after Kafka has refused one of them.

After a permanent refusal, the records in flight are sent one by one, until each of them is in Kafka or is
refused. If a right is missing, they are sent again after `RETRY` seconds, until all of them are in Kafka.

Meanwhile no newer records are sent, so that all stay in order.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from confluent_kafka import KafkaError

from tamis.messaging.connection import NOT_AUTHORIZED, NotAuthorizedError
from tamis.telemetry.logs import get_logger

TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
# A record that is refused with one of these codes will always be refused.
REFUSED = TOO_LARGE | {KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP}
PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
# Another record was refused, and this one fails with its request or with the whole producer.
COLLATERAL = {
    KafkaError._GAPLESS_GUARANTEE,
    KafkaError._FATAL,
    KafkaError._INVALID_DIFFERENT_RECORD,
}


_log = get_logger("edge.publisher")

RETRY = 1.0  # seconds until records that were refused for a missing right are sent again


class Step(Enum):
    """Work of the publisher for the records in flight: none, or to send them again with a new producer, in
    bundles or one by one.
    """

    NOTHING = auto()
    BUNDLES = auto()
    ONE_BY_ONE = auto()


class Resending:
    """The state, from the errors of the producer and from deliveries. `fault` is an error after which the
    edge can't continue. `denied` is a missing right, until Kafka takes a record again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.fault: str | None = None
        self.denied: NotAuthorizedError | None = None
        self.one_by_one = False  # until the records that were in flight beside a refused one are in Kafka
        self._refused = False  # a record was refused, and it isn't known which
        self._retry_at: float | None = (
            None  # when records that were refused for a missing right are sent again
        )
        self._again = False  # such records are in flight

    @property
    def waits(self) -> bool:
        """True while newer records must not get ahead of those in flight."""
        return self.one_by_one or self._again or self.lacks_right

    @property
    def lacks_right(self) -> bool:
        """True until records that were refused for a missing right are sent again."""
        return self._retry_at is not None

    def delivered(self) -> None:
        """Note that Kafka has taken a record."""
        self.denied = None

    def failed(self, error: KafkaError, topic: str | None, denied: Callable[[], NotAuthorizedError]) -> bool:
        """Note an error of the producer. `denied` makes the error of a missing right. Returns True if a right
        is missing: then nothing that the producer still has may arrive before the refused record.
        """
        code = error.code()
        if code in PURGED or (code in COLLATERAL and self.lacks_right):
            return False
        if code in NOT_AUTHORIZED:
            self._deny(denied())
            return True
        if (code in REFUSED or code in COLLATERAL) and not self.one_by_one:
            self._refused = True
        else:
            self.fault = f"{topic or 'a topic'}: {error}"
        return False

    def _deny(self, denied: NotAuthorizedError) -> None:
        if str(self.denied) != str(denied):
            _log.error("Kafka refuses records; they are sent again until it is granted", reason=str(denied))
        self.denied, self._retry_at = denied, self._clock() + RETRY

    def next_step(self, in_flight: int) -> Step:
        """The work that is due now. `in_flight` is the number of unconfirmed records."""
        if self.fault is not None:
            return Step.NOTHING
        if self._retry_at is not None:
            if self._clock() < self._retry_at:
                return Step.NOTHING
            self._retry_at, self._again = None, True
            return Step.BUNDLES
        if self._again and in_flight == 0:
            self._again, self.denied = False, None
        elif self._refused:
            _log.warning("Kafka refused a record; sending one by one to find it", in_flight=in_flight)
            return Step.ONE_BY_ONE
        elif self.one_by_one and in_flight == 0:
            return Step.BUNDLES
        return Step.NOTHING

    def reconnected(self, step: Step) -> None:
        """Note that a new producer takes all records in flight."""
        self.one_by_one, self._refused = step is Step.ONE_BY_ONE, False

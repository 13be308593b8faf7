"""The MQTT source: a message is acknowledged once it is in the journal."""

from __future__ import annotations

import ssl
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tamis.messaging.topics import is_stream_name
from tamis.telemetry.logs import get_logger
from tamis.telemetry.threads import DeadThreadError
from tamis.web.tls import client_context, is_loopback
from tamis_edge.settings import MqttSource, MqttTls
from tamis_edge.source_fields import STREAM, levels
from tamis_edge.sources.base import Source
from tamis_edge.sources.journal_shard import MOST_UNPLANNED, STRAY, JournalShard, StrayShard
from tamis_edge.storage.journal import Journal, JournalFullError

_log = get_logger("edge.mqtt")

# The session outlives the connection, so that the broker keeps messages meanwhile.
SESSION_SECONDS = 7 * 24 * 3600
ROOM_TO_RESUME = (
    0.1  # of the journal's limit: reconnecting at the first free byte would only disconnect again
)


# Reasons of MQTT 3.1.1 and 5 for a wrong user name or password.
_REFUSED = ("Bad user name or password", "Not authorized")
_CREDENTIALS = "check `username` and `password` of the source"
_TRUST = "check `tls.ca` of the source, and that `host` is a name or address that the certificate has"


def _tls(source: MqttSource) -> ssl.SSLContext:
    """The TLS context of a source. Raises InputError if its files can't be used."""
    files = source.tls if isinstance(source.tls, MqttTls) else MqttTls()
    return client_context(files.ca, where=f"source {source.name}: tls.ca", certificate=files.own)


class MqttShards(Source):
    """One subscription, with a shard for each stream of its messages."""

    def __init__(
        self,
        source: MqttSource,
        *,
        edge: str,
        journal: Journal,
        limit: int,
        planned: Callable[[str], bool | None],
        wake: Callable[[], None],
    ) -> None:
        """`limit`: the limit of the journal. `planned`: tells whether the plan has a stream; None while there
        is no plan.
        """
        self._source, self._edge, self._journal, self._wake = source, edge, journal, wake
        self._planned = planned
        self._room = int(limit * ROOM_TO_RESUME)
        self._unplanned = False  # refusing until there is a plan
        self._level = levels(source.topic).index(STREAM) if source.stream is None else None
        self._filter = source.topic.replace(STREAM, "+")
        self._lock = threading.Lock()
        self._shards: dict[str, JournalShard] = {}
        self._open = False
        self._refusing = False
        self._held_back = False
        self._stopped = False
        self._broker = f"the MQTT broker at {source.host}:{source.port}"  # in messages
        self._trouble: str | None = f"not connected to {self._broker} yet"
        suffix = f":{edge}/{source.name}"
        known = [name.removesuffix(suffix) for name in journal.shards() if name.endswith(suffix)]
        for stream in known if source.stream is None else [source.stream]:
            self._shard(stream)
        version = paho.MQTTv5 if source.protocol == "5" else paho.MQTTv311
        self._client_id = f"tamis-{edge}-{source.name}"
        options: dict[str, Any] = {} if source.protocol == "5" else {"clean_session": False}
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2, self._client_id, protocol=version, manual_ack=True, **options
        )
        if source.username is not None:
            password = source.password.get_secret_value() if source.password else None
            self._client.username_pw_set(source.username, password)
        if source.tls:
            self._client.tls_set_context(_tls(source))
        elif source.password is not None and not is_loopback(source.host):
            _log.warning("a password is sent to an MQTT broker without TLS", source=source.name)
        self._client.reconnect_delay_set(1, 10)
        self._client.on_connect = self._connected
        self._client.on_connect_fail = self._unreachable
        self._client.on_disconnect = self._disconnected
        self._client.on_subscribe = self._subscribed
        self._client.on_message = self._message

    def start(self) -> None:
        options: dict[str, Any] = {}
        if self._source.protocol == "5":
            session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            session.SessionExpiryInterval = SESSION_SECONDS
            options = {"clean_start": False, "properties": session}
        self._client.connect_async(self._source.host, self._source.port, **options)
        self._client.loop_start()
        self._open = True

    def shards(self) -> list[JournalShard]:
        if self._unplanned and self._planned(STRAY) is not None:
            self._unplanned = False
        waits = self._held_back or self._unplanned or self._stopped or self._journal.refused
        if self._refusing and not waits and self._journal.room >= self._room:
            # The broker sends again, in order, what was not acknowledged. With the old thread still there
            # the client would start none.
            self._client.loop_stop()
            self._refusing = False
            self.start()
        with self._lock:
            return list(self._shards.values())

    def troubles(self) -> dict[str, str | None]:
        return {self._source.name: self._trouble}

    def check(self) -> None:
        # The client keeps its thread to itself, but for the name.
        name = f"paho-mqtt-client-{self._client_id}"
        reading = self._open and not self._refusing and not self._stopped
        if reading and not any(thread.name == name for thread in threading.enumerate()):
            raise DeadThreadError(name, None)

    def refuse(self, full: bool) -> None:
        """Take no messages while the spool is full."""
        self._held_back = full
        if full and not self._refusing:
            self._refuse("the spool is full")

    def stop(self) -> None:
        self._stopped = True
        self._client.disconnect()
        self._client.loop_stop()

    def _shard(self, stream: str) -> JournalShard:
        with self._lock:
            if stream not in self._shards:
                kind = StrayShard if stream == STRAY else JournalShard
                self._shards[stream] = kind(
                    self._journal,
                    stream=stream,
                    edge=self._edge,
                    source=self._source.name,
                    topic=self._source.topic,
                    fields=self._source.fields,
                    declared=self._source.stream is not None,
                )
            return self._shards[stream]

    def _connected(
        self, client: paho.Client, _: Any, __: paho.ConnectFlags, reason: ReasonCode, ___: Properties | None
    ) -> None:
        if reason.is_failure:
            hint = f"; {_CREDENTIALS}" if str(reason) in _REFUSED else ""
            self._refused(f"{self._broker} refuses the connection: {reason}{hint}")
            return
        client.subscribe(self._filter, qos=1)

    def _subscribed(
        self, _: paho.Client, __: Any, ___: int, reasons: list[ReasonCode], ____: Properties | None
    ) -> None:
        failure = next((reason for reason in reasons if reason.is_failure), None)
        if failure is not None:
            self._refused(f"{self._broker} refuses to send {self._filter!r}: {failure}")
            return
        self._trouble = None
        _log.info("subscribed", source=self._source.name, topic=self._filter)

    def _refused(self, trouble: str) -> None:
        self._trouble = trouble
        _log.warning("the MQTT broker refuses", source=self._source.name, reason=trouble)

    def _unreachable(self, _: paho.Client, __: Any) -> None:
        # Called where the client handles the error, which it doesn't hand over.
        error = sys.exception()
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        self._trouble = f"can't reach {self._broker}: {why}"
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"certificate verify failed: {error.verify_message}"
            self._trouble = f"the certificate of {self._broker} is not trusted ({why}); {_TRUST}"
        elif isinstance(error, ssl.SSLError):
            self._trouble = f"no TLS with {self._broker}: {error.reason or error}; check its port, and `tls`"
        _log.warning("can't reach the MQTT broker", source=self._source.name, error=self._trouble)

    def _disconnected(
        self, _: paho.Client, __: Any, ___: paho.DisconnectFlags, reason: ReasonCode, ____: Properties | None
    ) -> None:
        # A broker that has refused also closes the connection. The trouble is then its reason for that.
        if reason.is_failure and not self._stopped and self._trouble is None:
            self._trouble = f"lost {self._broker}: {reason}"
            _log.warning("lost the MQTT broker", source=self._source.name, reason=self._trouble)

    def _message(self, client: paho.Client, _: Any, message: paho.MQTTMessage) -> None:
        if self._refusing:
            # One that came behind a refused one must wait as well: it would overtake it.
            return
        stream, payload = self._placed(message)
        if stream is None:
            self._unplanned = True
            self._refuse(f"there is no plan yet, and readings of {MOST_UNPLANNED} streams wait for it")
            return
        try:
            safe = self._journal.append(self._shard(stream).name, [payload], time.time_ns() // 1000)
        except JournalFullError as error:
            self._refuse(str(error))
            return

        def acknowledge(done: Future[None]) -> None:
            if done.exception() is None:
                client.ack(message.mid, message.qos)
                self._wake()
            else:
                self._refuse(str(done.exception()))

        safe.add_done_callback(acknowledge)

    def _placed(self, message: paho.MQTTMessage) -> tuple[str | None, bytes]:
        """The stream of the shard that takes a message, None if there is none yet, and the row for the
        journal.
        """
        payload = bytes(message.payload)
        if self._source.stream is not None:
            return self._source.stream, payload
        stream = message.topic.split("/")[self._level or 0]
        planned = self._planned(stream) if is_stream_name(stream) else False
        if planned is False:
            return STRAY, StrayShard.pack(stream, payload)
        with self._lock:
            new = planned is None and stream not in self._shards
            return (None if new and len(self._shards) >= MOST_UNPLANNED else stream), payload

    def _refuse(self, why: str) -> None:
        _log.warning("pausing an MQTT source", source=self._source.name, reason=why)
        self._refusing, self._trouble = True, why
        self._client.disconnect()

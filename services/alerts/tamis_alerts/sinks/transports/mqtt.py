"""Attempts to publish a notification to an MQTT broker, with acknowledged delivery (QoS 1)."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tamis_alerts.core.notifications import Notification, event_id
from tamis_alerts.settings import sink_context
from tamis_alerts.sink_settings import Mqtt
from tamis_alerts.sinks.notification import SendError, body

# Reasons of MQTT 5 that blame the message. No other attempt changes them.
_LASTING = ("Topic name invalid", "Packet too large", "Payload format invalid")


class _Connection:
    """One connection and the messages that the broker has not acknowledged. It ends with its first error:
    the client would otherwise publish after a reconnection what was given up meanwhile.
    """

    def __init__(self, sink: Mqtt) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._sent: dict[int, asyncio.Future[None]] = {}  # by the identifier of the message
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2,
            # Several workers publish for one sink, and a broker disconnects a client whose name comes again.
            f"tamis-{sink.name}-{secrets.token_hex(4)}"[-60:],
            protocol=paho.MQTTv5 if sink.protocol == "5" else paho.MQTTv311,
            reconnect_on_failure=False,
        )
        if sink.username is not None:
            password = sink.password.get_secret_value() if sink.password else None
            self._client.username_pw_set(sink.username, password)
        if sink.tls:
            self._client.tls_set_context(sink_context(sink))
        self._client.connect_timeout = sink.timeout
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = self._on_connect_fail
        self._client.on_disconnect = self._on_disconnect
        self._client.on_publish = self._on_publish
        self._client.connect_async(sink.host, sink.port)
        self._client.loop_start()

    @property
    def ended(self) -> bool:
        """True after an error."""
        return self._ready.done() and self._ready.exception() is not None

    async def publish(self, payload: bytes, properties: Properties | None) -> None:
        """Publish a message, and return when the broker has acknowledged it. Raises SendError."""
        await asyncio.shield(self._ready)
        # The acknowledgement comes to the loop's thread, so that it can't overtake the next two lines.
        sent = self._client.publish(self._sink.topic, payload, 1, self._sink.retain, properties)
        acknowledged = self._sent[sent.mid] = self._loop.create_future()
        try:
            await acknowledged
        finally:
            self._sent.pop(sent.mid, None)

    def end(self, reason: str) -> None:
        """Fail all that waits for the broker."""
        if not self._ready.done():
            self._ready.set_exception(SendError(reason))
        elif self._ready.exception() is None:
            self._ready = self._loop.create_future()
            self._ready.set_exception(SendError(reason))
        self._ready.exception()  # nobody may wait for it
        for future in self._sent.values():
            if not future.done():
                future.set_exception(SendError(reason))

    async def close(self) -> None:
        """Disconnect, and end the client's thread."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    # ---- callbacks in the client's thread

    def _on_connect(self, _: Any, __: Any, ___: Any, reason: ReasonCode, ____: Any) -> None:
        failed = reason.is_failure
        self._later(self.end, f"the broker refuses the connection: {reason}") if failed else self._later(
            self._opened
        )

    def _on_connect_fail(self, _: Any, __: Any) -> None:
        self._later(self.end, "the broker can't be reached")

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: ReasonCode, ____: Any) -> None:
        self._later(self.end, f"the connection has ended: {reason}")

    def _on_publish(self, _: Any, __: Any, mid: int, reason: ReasonCode, ____: Any) -> None:
        self._later(self._acknowledged, mid, str(reason) if reason.is_failure else "")

    def _later(self, call: Any, *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    # ---- in the event loop

    def _opened(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def _acknowledged(self, mid: int, failure: str) -> None:
        future = self._sent.get(mid)
        if future is None or future.done():
            return
        if failure:
            error = SendError(f"the broker refuses the message: {failure}", passing=failure not in _LASTING)
            future.set_exception(error)
        else:
            future.set_result(None)


class MqttTransport:
    """Publishes events as JSON over one connection, and makes a new connection after an error."""

    def __init__(self, sink: Mqtt) -> None:
        self._sink = sink
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()

    async def send(self, notification: Notification) -> None:
        """Publish an event. Raises SendError."""
        payload = body(self._sink.body, notification)
        properties = None
        if self._sink.protocol == "5":
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            if self._sink.body is None:
                properties.ContentType = "application/json"
            properties.UserProperty = [("idempotency-key", event_id(notification.episode))]
        connection = await self._open()
        try:
            await connection.publish(payload, properties)
        except asyncio.CancelledError:
            # The attempt has taken too long. The broker may be away without a word.
            connection.end("another notification got no answer in time")
            raise

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> _Connection:
        async with self._lock:
            if self._connection is not None and self._connection.ended:
                await self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = _Connection(self._sink)
            return self._connection

"""MQTT 3.1.1 broker under the control of a test: it redelivers, and can lose acknowledgements.

It delivers again what was not acknowledged, as the standard demands ([MQTT-4.4.0-1]). Eclipse Mosquitto does
so too, but is not installed everywhere; amqtt forgets messages on their way to a client that dies.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections import Counter
from enum import IntEnum
from typing import cast


class _Packet(IntEnum):
    CONNECT = 1
    PUBLISH = 3
    PUBACK = 4
    SUBSCRIBE = 8
    PINGREQ = 12
    DISCONNECT = 14


_DUP, _QOS_1 = 8, 2


class ByHand:
    """One subscriber with a session, any number of senders; every message goes to the subscriber. `again`:
    how often each payload was delivered again.
    """

    def __init__(self) -> None:
        self.again: Counter[bytes] = Counter()
        self._lock = threading.RLock()
        self._subscriber = b""
        self._socket: socket.socket | None = None  # the subscriber's, while it is there
        self._pending: dict[int, bytes] = {}  # what isn't acknowledged: topic and payload, in order
        self._sent: set[int] = set()
        self._last = 0
        self._deaf = False
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.broker = self
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def lose_acknowledgements(self) -> None:
        """From now on, until the subscriber comes again."""
        with self._lock:
            self._deaf = True

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def connected(self, client: bytes, link: socket.socket) -> None:
        """Whoever is the subscriber gets what it hasn't acknowledged."""
        with self._lock:
            known = client == self._subscriber
            link.sendall(bytes([0x20, 2, known, 0]))
            if known:
                self._socket, self._deaf = link, False
                for number in self._pending:
                    self._deliver(number)

    def subscribed(self, client: bytes, link: socket.socket, number: bytes) -> None:
        """The client is the subscriber."""
        with self._lock:
            self._subscriber, self._socket = client, link
            link.sendall(b"\x90\x03" + number + b"\x01")

    def published(self, body: bytes, link: socket.socket) -> None:
        """A sender's message, of QoS 1."""
        end = 2 + int.from_bytes(body[:2], "big")
        with self._lock:
            self._last += 1
            self._pending[self._last] = body[:end] + struct.pack("!H", self._last) + body[end + 2 :]
            self._deliver(self._last)
        link.sendall(b"\x40\x02" + body[end : end + 2])

    def acknowledged(self, body: bytes) -> None:
        """By the subscriber."""
        with self._lock:
            if not self._deaf:
                del self._pending[int.from_bytes(body, "big")]

    def gone(self, link: socket.socket) -> None:
        """A connection has ended."""
        with self._lock:
            if self._socket is link:
                self._socket = None

    def _deliver(self, number: int) -> None:
        if self._socket is None:
            return
        body = self._pending[number]
        if number in self._sent:
            self.again[body[4 + int.from_bytes(body[:2], "big") :]] += 1
        head = _Packet.PUBLISH << 4 | _QOS_1 | (_DUP if number in self._sent else 0)
        self._sent.add(number)
        try:
            self._socket.sendall(bytes([head]) + _length(len(body)) + body)
        except OSError:
            self._socket = None  # it was killed


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    broker: ByHand


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        broker = cast(_Server, self.server).broker
        client = b""
        try:
            while head := self.rfile.read(1):
                body = self.rfile.read(self._length())
                match head[0] >> 4:
                    case _Packet.CONNECT:
                        size = int.from_bytes(body[10:12], "big")
                        client = body[12 : 12 + size]
                        broker.connected(client, self.connection)
                    case _Packet.PUBLISH:
                        broker.published(body, self.connection)
                    case _Packet.PUBACK:
                        broker.acknowledged(body)
                    case _Packet.SUBSCRIBE:
                        broker.subscribed(client, self.connection, body[:2])
                    case _Packet.PINGREQ:
                        self.connection.sendall(b"\xd0\x00")
                    case _Packet.DISCONNECT:
                        return
        except ConnectionError:
            pass  # whoever is killed says nothing
        finally:
            broker.gone(self.connection)

    def _length(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.rfile.read(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7


def _length(value: int) -> bytes:
    found = bytearray()
    while True:
        value, byte = value >> 7, value & 127
        found.append(byte | (128 if value else 0))
        if not value:
            return bytes(found)

"""Spark's RPC, spoken by a stranger: one that has no secret and connects to a port of Spark's JVM."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

import psutil

# Type of a message of Spark's network layer (org.apache.spark.network.protocol.Message.Type).
_RPC_REQUEST = 3
_FRAME = struct.Struct(">QB")  # length of the whole frame, and the type
_SECONDS = 5.0
# Not the beginning of a serialised object: Java's ObjectInputStream names it.
_NO_OBJECT = b"\xca\xfe\xba\xbe"
DESERIALISED = "StreamCorruptedException: invalid stream header: CAFEBABE"
"""What Spark answers if it has given the stranger's bytes to Java's deserialisation."""
REFUSED = "Unknown challenge message"
"""What Spark answers if it expects that the stranger proves first to have the secret."""


def listening(process: psutil.Process) -> list[tuple[str, int]]:
    """Addresses on which a process and its children listen by TCP."""
    addresses = set[tuple[str, int]]()
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # one that only ran a command has ended meanwhile
            connections = one.net_connections("tcp")
            addresses |= {
                (str(c.laddr[0]), int(c.laddr[1])) for c in connections if c.status == psutil.CONN_LISTEN
            }
    return sorted(addresses)


def call(address: tuple[str, int], endpoint: str = "endpoint-verifier") -> str:
    """Send an endpoint bytes that aren't an object, and return the answer; empty if the connection is closed
    without one.
    """
    name = endpoint.encode()
    # No address of the sender, that of the receiver, its name, and what is to be deserialised.
    body = b"\x00\x01" + _text(address[0].encode()) + struct.pack(">i", address[1]) + _text(name) + _NO_OBJECT
    return _answer(address, struct.pack(">qi", 1, len(body)) + body)


def gateway(address: tuple[str, int]) -> str:
    """Ask what may be PySpark's gateway for a class of Java, without its token, and return the answer."""
    with socket.create_connection(address, _SECONDS) as connection:
        connection.sendall(b"r\nu\njava.lang.System\nrj\ne\n")
        try:
            return connection.recv(65_536).decode(errors="replace")
        except (TimeoutError, ConnectionResetError):
            return ""


def _text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def _answer(address: tuple[str, int], content: bytes) -> str:
    with socket.create_connection(address, _SECONDS) as connection:
        connection.sendall(_FRAME.pack(_FRAME.size + len(content), _RPC_REQUEST) + content)
        answer = b""
        try:
            while len(answer) < _FRAME.size or len(answer) < _FRAME.unpack_from(answer)[0]:
                if not (part := connection.recv(65_536)):
                    break
                answer += part
        except (TimeoutError, ConnectionResetError):
            return ""
    return answer[_FRAME.size :].decode(errors="replace")

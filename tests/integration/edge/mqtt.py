"""MQTT brokers on loopback, with and without TLS."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import paho.mqtt.client as paho
from amqtt.broker import Broker as AmqttBroker
from paho.mqtt.enums import CallbackAPIVersion
from pwdlib import PasswordHash

from tamis.local.service_process import free_ports

MOSQUITTO = shutil.which("mosquitto")


class MqttBroker(Protocol):
    """Where it listens; `edge` with the password `secret` may come."""

    port: int

    def stop(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True)
class Certificate:
    """PEM files of a server; those of `make` are for 127.0.0.1, signed by themselves."""

    certificate: Path
    key: Path

    @classmethod
    def make(cls, directory: Path) -> Certificate:
        """A new one."""
        made = cls(directory / "broker.pem", directory / "broker.key")
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        files = ["-keyout", str(made.key), "-out", str(made.certificate)]
        subprocess.run(["openssl", "req", *kind, *names, *files], check=True, capture_output=True)
        return made


class Amqtt:
    """amqtt in a thread of this process: MQTT 3.1.1.

    It keeps sessions of clients with a name, and what comes while they are away; but what was on its way to a
    client that dies it forgets, so that a client may only be killed when it has acknowledged all.
    """

    def __init__(
        self, directory: Path, tls: Certificate | None = None, *, port: int = 0, password: str = "secret"
    ) -> None:
        self.port = port or free_ports(1)[0]
        self._users, self._tls = directory / "users", tls
        self._users.write_text(f"edge:{PasswordHash.recommended().hash(password)}\n")
        self._loop = asyncio.new_event_loop()
        self._broker: AmqttBroker | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    async def _start(self) -> None:
        plugin = {"amqtt.plugins.authentication.FileAuthPlugin": {"password_file": str(self._users)}}
        listener: dict[str, Any] = {"type": "tcp", "bind": f"127.0.0.1:{self.port}"}
        if self._tls is not None:
            files = {"certfile": str(self._tls.certificate), "keyfile": str(self._tls.key)}
            listener |= {"ssl": True, **files}
        self._broker = AmqttBroker({"listeners": {"default": listener}, "plugins": plugin})
        await self._broker.start()

    def unacknowledged(self) -> int:
        """Messages on their way to the edge."""
        assert self._broker is not None
        return sum(len(session.inflight_out) for session, _ in self._broker._sessions.values())

    def away(self) -> bool:
        """True if the edge's session has lost its client."""
        assert self._broker is not None
        return bool(self._broker._sessions["tamis-m-q"][0].transitions.state == "disconnected")

    def stop(self) -> None:
        """End it."""
        assert self._broker is not None
        asyncio.run_coroutine_threadsafe(self._broker.shutdown(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


class Mosquitto:
    """Eclipse Mosquitto, where there is one: MQTT 3.1.1 and 5; it sends again what was not acknowledged."""

    def __init__(
        self, directory: Path, tls: Certificate | None = None, *, port: int = 0, password: str = "secret"
    ) -> None:
        assert MOSQUITTO is not None
        self.port = port or free_ports(1)[0]
        users = directory / "users"
        tool = Path(MOSQUITTO).parent.parent / "bin" / "mosquitto_passwd"
        subprocess.run([tool, "-b", "-c", str(users), "edge", password], check=True, capture_output=True)
        users.chmod(0o600)
        lines = [f"listener {self.port} 127.0.0.1", "max_queued_messages 0"]
        lines += ["allow_anonymous false", f"password_file {users}"]
        if os.geteuid() == 0:
            lines.append("user root")  # as another it could not read the key
        if tls is not None:
            lines += [f"certfile {tls.certificate}", f"keyfile {tls.key}"]
        config = directory / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        self._process = subprocess.Popen([MOSQUITTO, "-c", str(config)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(10)


def sender(broker: MqttBroker, tls: Certificate | None = None, password: str = "secret") -> paho.Client:
    """A client that is connected."""
    client = paho.Client(CallbackAPIVersion.VERSION2, "sender")
    client.username_pw_set("edge", password)
    if tls is not None:
        client.tls_set(str(tls.certificate), tls_version=ssl.PROTOCOL_TLS_CLIENT)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    return client

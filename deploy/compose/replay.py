"""Sends the recorded readings of four motes to the edges, with present times and twenty times as fast.

python replay.py RECORDING.csv sends the motes outdoors to edge-a over HTTP, and the motes indoors over MQTT
to the broker from which edge-b reads. A mote was read every 5 seconds; here the readings are 0.25 s apart.
Each reading is sent again until it is acknowledged, as a gateway on a plant would do. The environment sets:

| variable | default | meaning |
|---|---|---|
| `REPLAY_LOOPS` | 0 | how often the recording is sent; 0: until the container is stopped |
| `REPLAY_FROM` | 1 | number of the reading with which the first loop begins |
| `REPLAY_TO` | 0 | number of the reading after which each loop ends; 0: the last one |
| `TAMIS_TOKEN_FILE` | | file with the token for the edge |
"""

from __future__ import annotations

import csv
import http.client
import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

SPACING = 250_000  # microseconds between two readings of a mote
EDGE = os.environ.get("REPLAY_EDGE", "edge-a:8282")
BROKER = os.environ.get("REPLAY_BROKER", "mosquitto:1883")
STREAM = "readings"
# A batch of readings is sent this often: small enough for alarms within a second or two.
PAUSE_SECONDS = 0.5
RETRY_SECONDS = 1.0
TIMEOUT_SECONDS = 15.0
# Messages without an acknowledgement that paho holds; more wait in `publish`.
MOST_IN_FLIGHT = 100

Reading = dict[str, Any]


def load(path: Path, first: int, last: int) -> dict[int, list[Reading]]:
    """The readings by number, from `first` to `last` (0: the end)."""
    found: dict[int, list[Reading]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            number = int(row["reading"])
            if number >= first and (not last or number <= last):
                found[number].append(
                    {
                        "indoor": int(row["indoor"]),
                        "mote_id": int(row["mote_id"]),
                        "humidity": float(row["humidity"]),
                        "temperature": float(row["temperature"]),
                    }
                )
    return found


def timed(path: Path, loops: int, first: int, last: int, start: int) -> Iterator[tuple[int, list[Reading]]]:
    """Readings in order, each list with its event time in microseconds; the first one has `start`."""
    step, loop = 0, 0
    while not loops or loop < loops:
        for _, readings in sorted(load(path, first if loop == 0 else 1, last).items()):
            time_of_reading = start + step * SPACING
            yield time_of_reading, [{**reading, "ts": time_of_reading} for reading in readings]
            step += 1
        loop += 1


class HttpSender:
    """Sends batches to the edge. A batch is repeated until the edge says that it is on disk."""

    def __init__(self, address: str, token: str | None, stopping: threading.Event) -> None:
        self._address, self._stopping = address, stopping
        self._headers = {"Content-Type": "application/x-ndjson"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def send(self, readings: list[Reading]) -> None:
        """Send one batch."""
        body = b"\n".join(json.dumps(reading).encode() for reading in readings)
        while not self._stopping.is_set():
            connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
            try:
                connection.request("POST", f"/v1/streams/{STREAM}", body, self._headers)
                answer = connection.getresponse()
                text = answer.read().decode(errors="replace")
                if answer.status == http.client.ACCEPTED:
                    return
                say(f"edge-a answers {answer.status}: {text[:300]}; trying again")
            except (OSError, http.client.HTTPException) as error:
                say(f"edge-a can't be reached: {error}; trying again")
            finally:
                connection.close()
            self._stopping.wait(RETRY_SECONDS)


class MqttSender:
    """Sends each reading as a message with QoS 1. Paho repeats messages without an acknowledgement."""

    def __init__(self, address: str, stopping: threading.Event) -> None:
        host, _, port = address.partition(":")
        self._stopping = stopping
        self._waiting: list[mqtt.MQTTMessageInfo] = []
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id="replay", protocol=MQTTProtocolVersion.MQTTv5
        )
        if user := os.environ.get("REPLAY_MQTT_USERNAME"):
            self._client.username_pw_set(user, _secret("REPLAY_MQTT_PASSWORD_FILE"))
        if authority := os.environ.get("REPLAY_MQTT_CA"):
            self._client.tls_set(authority)
        self._client.connect_async(host, int(port or 1883))
        self._client.loop_start()

    def send(self, readings: list[Reading]) -> None:
        """Send one batch."""
        for reading in readings:
            topic = f"plant/{STREAM}/{reading['mote_id']}"
            self._waiting.append(self._client.publish(topic, json.dumps(reading), qos=1))
        self.wait(MOST_IN_FLIGHT)

    def wait(self, most: int = 0) -> None:
        """Wait until at most so many messages have no acknowledgement."""
        while not self._stopping.is_set():
            self._waiting = [one for one in self._waiting if not one.is_published()]
            if len(self._waiting) <= most:
                return
            time.sleep(0.05)

    def close(self) -> None:
        """Disconnect from the broker."""
        self._client.disconnect()
        self._client.loop_stop()


def main(path: Path) -> None:
    """Send the readings until they end, or until SIGTERM."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    outdoors = HttpSender(EDGE, _secret("TAMIS_TOKEN_FILE"), stopping)
    indoors = MqttSender(BROKER, stopping)
    start = time.time_ns() // 1000
    loops, first, last = (int(os.environ.get(f"REPLAY_{name}") or 0) for name in ("LOOPS", "FROM", "TO"))
    say(f"start {start}")
    sent = 0
    batch: tuple[list[Reading], list[Reading]] = ([], [])
    for at, readings in timed(path, loops, max(1, first), last, start):
        for reading in readings:
            batch[reading["indoor"]].append(reading)
        due = at / 1e6 - time.time()
        if len(batch[0]) + len(batch[1]) >= 2 * PAUSE_SECONDS * 1e6 / SPACING or due > 0:
            outdoors.send(batch[0])
            indoors.send(batch[1])
            sent += len(batch[0]) + len(batch[1])
            batch = ([], [])
        if stopping.wait(max(0.0, due)):
            break
    if not stopping.is_set():
        outdoors.send(batch[0])
        indoors.send(batch[1])
        indoors.wait()
        say(f"sent {sent + len(batch[0]) + len(batch[1])}")
    indoors.close()


def say(text: str) -> None:
    """Write a line to the container's log."""
    print(text, flush=True)


def _secret(variable: str) -> str | None:
    """The text of the file that a variable names; None without the variable."""
    path = os.environ.get(variable)
    return Path(path).read_text(encoding="utf-8").strip() if path else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))

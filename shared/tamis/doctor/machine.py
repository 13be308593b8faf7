"""Checks of this machine: Java, ports, memory, disk and clock."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import orjson

from tamis.doctor.places import Finding, Places
from tamis.durations import seconds
from tamis.errors import TamisError
from tamis.java.runtime import find_java
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import ACKS
from tamis.settings import ServiceSettings
from tamis.sizing.figures import unit_costs
from tamis.telemetry.health import disk_trouble

PORTS = {9092: "Kafka", 8181: "the registry", 8282: "readings over HTTP"}
GIB = 2**30
# A database, a checkpoint and a day of retained readings of a small fleet fit into it.
ENOUGH_DISK = GIB
# Edges with clocks that differ by less aren't reported: heartbeats come every 2 s.
SKEW = 5_000_000
_LAST_REPORTS = 20


def java(_: Places) -> Finding:
    """Java 17 or newer, which Kafka and Spark need."""
    try:
        return Finding("ok", f"{find_java()} is new enough")
    except TamisError as error:
        return Finding(
            "failed", str(error), "the joiner and the Kafka of `tamis up` need it; edges and registry don't"
        )


def ports(places: Places) -> Finding:
    """The ports that `tamis up` prefers."""
    taken = [port for port in PORTS if not _free(port)]
    if not taken:
        return Finding("ok", f"{', '.join(map(str, PORTS))} are free on 127.0.0.1")
    found = ", ".join(f"{port} ({PORTS[port]})" for port in taken) + " in use on 127.0.0.1"
    try:
        places.registry.request("GET", "/v1/plans")
    except TamisError:
        todo = "`tamis up` takes other ports instead; to have these, stop the program that listens on them"
        return Finding("warning", found, todo)
    return Finding("ok", f"{found}; a fleet runs")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def memory(_: Places) -> Finding:
    """Memory for all services of a fleet at rest."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError as error:
        return Finding("unchecked", f"/proc/meminfo can't be read: {error.strerror}")
    found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    free = found["MemAvailable"]
    costs = unit_costs().costs.values()
    needed = int(sum(one.value for one in costs if one.name.endswith("_memory_mb")) * 1_000_000)
    said = f"{free / GIB:.1f} GiB available; a small fleet needs {needed / GIB:.1f} GiB at rest"
    if free >= needed:
        return Finding("ok", said)
    return Finding("warning", said, "run fewer services here; `tamis size` estimates the memory of each one")


def disk(_: Places) -> Finding:
    """Room in the data directory."""
    folder = Path(os.environ.get("TAMIS_DATA") or ServiceSettings.model_fields["data"].default).absolute()
    if os.environ.get("TAMIS_DATA") and not folder.is_dir():
        return Finding("failed", f"TAMIS_DATA={folder} is no directory", "create it, or mount its disk")
    while not folder.exists():
        folder = folder.parent
    if (trouble := disk_trouble(folder)) is not None:
        return Finding("failed", trouble, "make room on the disk, or set TAMIS_DATA to another one")
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    said = f"{free / GIB:.1f} GiB free at {folder}"
    if free >= ENOUGH_DISK:
        return Finding("ok", said)
    return Finding("warning", said, "edges shed or stop when the disk is full; make room, or set TAMIS_DATA")


def clock(places: Places) -> Finding:
    """This machine's clock beside those of edges, by the times of their newest signs of life in Kafka."""
    if ACKS not in places.cluster.topics:
        return Finding("unchecked", "no fleet has used this Kafka, so there is no time to compare with")
    with TopicReader(places.kafka.client_config(), [ACKS]) as reader:
        times = [_time(record.value) for record in reader.snapshot(5.0, last={ACKS: _LAST_REPORTS})]
    newest = max((one for one in times if one is not None), default=None)
    if newest is None:
        return Finding("unchecked", "no edge has reported, so there is no time to compare with")
    ahead = newest - time.time_ns() // 1000
    if ahead > SKEW:
        return Finding(
            "failed",
            f"the newest sign of life of an edge is {seconds(ahead)} ahead of the clock of this machine",
            "set the clocks of this machine and of the edges by NTP",
        )
    if ahead < -SKEW:
        return Finding(
            "unchecked", f"the newest sign of life of an edge is {seconds(-ahead)} old: no edge runs now"
        )
    return Finding("ok", "the clocks of this machine and of the edges agree to 5 s")


def _time(value: bytes | None) -> int | None:
    try:
        told = orjson.loads(value or b"null")
    except ValueError:
        return None  # the registry reports records that can't be read
    when = told.get("time") if isinstance(told, dict) else None
    return when if type(when) is int else None

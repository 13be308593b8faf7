"""Queries of Spark that a benchmark runs as processes: the joiner, and Spark's own join."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import orjson
import psutil

from benchmarks.harness import Say
from tamis.errors import UnavailableError
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import ServiceProcess, free_ports

LOOK_SECONDS = 0.1
PATIENCE = 900.0
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Joined:
    """Rows between the end of the first batch and that of the last, and what they cost."""

    rows: int
    batches: int
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Input:
    """Topics that a query is to read, their records in all, and how many of them in a batch."""

    topics: Sequence[str]
    records: int
    batch: int


@contextmanager
def joiner_process(
    bootstrap: str, directory: Path, batch: int, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[psutil.Process]:
    """A joiner whose checkpoint is `joiner/query` in a directory, with further variables. With the master
    `local[n]`, its processes run on the first n cores.
    """
    (port,) = free_ports(1)
    environment = {
        "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
        "TAMIS_DATA": str(directory),
        "TAMIS_TELEMETRY_PORT": str(port),
        "TAMIS_JOINER_BATCH": str(batch),
        **more,
    }
    url = f"http://127.0.0.1:{port}/readyz"
    process = ServiceProcess("joiner", ["joiner"], environment, directory / "joiner.log", url)
    process.start()
    running = psutil.Process(process.pid)
    if cores := re.fullmatch(r"local\[(\d+)\]", more.get("TAMIS_JOINER_MASTER", "")):
        # The JVM and the workers, which the process starts later, inherit it.
        running.cpu_affinity(sorted(os.sched_getaffinity(0))[: int(cores[1])])
    try:
        yield running
    finally:
        process.stop()


@contextmanager
def join_process(
    bootstrap: str, directory: Path, batch: int, topics: Sequence[str]
) -> Iterator[psutil.Process]:
    """Spark's own join, with its checkpoint in `peer` in a directory. `topics`: of air, surface, alarms."""
    arguments = [bootstrap, str(directory / "peer"), str(batch), *topics]
    with (directory / "peer.log").open("wb") as log:
        process = subprocess.Popen(
            with_parent_death_signal([sys.executable, "-m", "benchmarks.spark_join", *arguments]),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def follow(
    checkpoint: Path,
    process: psutil.Process,
    given: Input,
    say: Say,
    others: Sequence[psutil.Process] = (),
) -> Joined:
    """Watch a query's own checkpoint, which says when a batch was done and up to which offsets it read, until
    it has read its input. `others`: further processes that work for it. Raises UnavailableError if it doesn't
    read its input.
    """
    done: dict[int, tuple[float, int, float]] = {}  # batch -> its end, rows up to it, CPU seconds by then
    deadline = time.monotonic() + PATIENCE
    while not done or done[max(done)][1] < given.records:
        if time.monotonic() > deadline or not process.is_running() or process.status() == "zombie":
            raise UnavailableError("the query did not read its topics to their end", where=str(checkpoint))
        for commit in (checkpoint / "commits").glob("[0-9]*"):
            number = int(commit.name)
            if number not in done:
                rows = _rows(checkpoint / "offsets" / commit.name, given.topics)
                spent = sum(cpu_seconds(one) for one in (process, *others))
                done[number] = commit.stat().st_mtime, rows, spent
                say(f"{rows:,} of {given.records:,} rows")
        time.sleep(LOOK_SECONDS)
    ends = [done[number] for number in sorted(done)]
    # What rounding leaves over for a last batch of a few rows would cost as much as a large one.
    large = [now for before, now in pairwise(ends) if now[1] - before[1] >= given.batch / 2]
    first, last = ends[0], large[-1]
    return Joined(last[1] - first[1], len(large), last[0] - first[0], last[2] - first[2])


def _rows(offsets: Path, topics: Sequence[str]) -> int:
    """The records of topics that were read by the end of a batch: Kafka counts offsets from 0."""
    _, _, *sources = offsets.read_text().splitlines()
    return sum(
        sum(partitions.values())
        for source in sources
        for topic, partitions in orjson.loads(source).items()
        if topic in topics
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Of the service, Spark's JVM and its Python workers together."""
    seconds = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        seconds += times.user + times.system
    return seconds


def resident(process: psutil.Process) -> int:
    """Resident bytes of a process and its children: memory that several of them share counts once."""
    found = 0
    for one in (process, *process.children(recursive=True)):
        try:
            found += one.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return found

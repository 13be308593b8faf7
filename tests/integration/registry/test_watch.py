"""`tamis watch` beside a registry: which alerts there are, where it begins to read, and Kafka away."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.durations import iso_text
from tamis.local.broker import EmbeddedKafka
from tamis.messaging.topics import ALARMS, EPISODES

TAMIS = [sys.executable, "-P", "-m", "tamis.cli"]


def alarm(number: int, alert: str = "hot") -> bytes:
    return orjson.dumps({"alert": alert, "key": ["k"], "event_time": number, "row": {"n": number}})


def produce(bootstrap: str, values: list[bytes], ages: int = 0) -> None:
    """Write to `tamis.alarms`, `ages` seconds ago."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(ALARMS, value, b"k", timestamp=int((time.time() - ages) * 1000))
    assert producer.flush(30) == 0


def ended(bootstrap: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A watch that ends by itself."""
    command = [*TAMIS, "watch", *arguments, "--bootstrap", bootstrap]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def watching(bootstrap: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*TAMIS, "watch", *arguments, "--bootstrap", bootstrap]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def test_an_alert_that_does_not_exist_is_refused(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    nosuch = ended(fresh, "nosuch")
    assert (nosuch.returncode, nosuch.stdout) == (2, "")
    assert "there is no alert 'nosuch'; known names: hot" in nosuch.stderr
    produce(fresh, [alarm(1), b"not JSON", alarm(2, "other"), alarm(3)])
    with watching(fresh, "HOT", "--from-beginning") as process:
        first, second, third = lines(process, 3)
        assert ("n=1" in first, "offset 1: this record can't be read" in second, "n=3" in third) == (
            True,
        ) * 3
    # A paused alert still is one. Of one that was dropped only what was before can be shown.
    registry.sql("PAUSE ALERT hot;")
    with watching(fresh, "hot", "--from-beginning") as process:
        assert "n=1" in lines(process, 1)[0]
    registry.sql("DROP ALERT hot;")
    with watching(fresh, "hot", "--from-beginning") as process:
        told, first = lines(process, 2)
        assert ("alert 'hot' was dropped" in told, "n=1" in first) == (True, True)
    dropped = ended(fresh, "hot")
    assert (dropped.returncode, "there is no alert 'hot'; none is defined" in dropped.stderr) == (2, True)


def test_it_begins_where_it_is_told_to(fresh: str) -> None:
    """Also without a registry: it says that the alert can't be looked up, and goes on."""
    admin = AdminClient({"bootstrap.servers": fresh})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in (ALARMS, EPISODES)]).values():
        future.result(30)
    produce(fresh, [alarm(1)], ages=7200)
    produce(fresh, [alarm(2)], ages=60)
    with watching(fresh, "hot", "--since", "1h") as process:
        told, times, first = lines(process, 3)
        assert "can't tell whether there is an alert 'hot': topic tamis.statements" in told
        assert "can't tell which columns are times: topic tamis.plans" in times
        assert "n=2" in first
    with watching(fresh, "hot") as process:
        assert "can't tell" in lines(process, 1)[0]  # it has found the end before
        produce(fresh, [alarm(3)])
        assert "n=3" in lines(process, 2)[1]  # behind the line on the columns
    both = ended(fresh, "--since", "1h", "--from-beginning")
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)


def test_it_says_that_kafka_is_away_and_back(empty: EmbeddedKafka) -> None:
    broker = empty
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in (ALARMS, EPISODES)]).values():
        future.result(30)
    with watching(broker.bootstrap, "hot") as process:
        assert "can't tell" in lines(process, 1)[0]
        broker.kill()
        assert f"Kafka at {broker.bootstrap}: can't be reached" in lines(process, 1)[0]
        broker.start()
        assert lines(process, 1) == ["Kafka answers again\n"]
        produce(broker.bootstrap, [alarm(4)])
        assert "n=4" in lines(process, 2)[1]  # behind the line on the columns


def test_no_kafka_is_told_with_its_address() -> None:
    done = ended("127.0.0.1:1", "hot", "--from-beginning")
    assert done.returncode == 2
    assert "Kafka at 127.0.0.1:1: can't be reached" in done.stderr
    assert "check that it is up, and TAMIS_KAFKA_BOOTSTRAP" in done.stderr


def test_times_of_a_row_are_iso_8601_whichever_plan_made_them(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())

    def made(condition: int, column: str) -> int:
        text = (
            f"CREATE OR REPLACE ALERT hot AS SELECT a.k, a.v, a.ts AS {column} FROM air a JOIN surface s ON "
            "a.k = s.k AND s.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts + INTERVAL '10' SECOND "
            f"WHERE a.v + s.v > {condition};"
        )
        (outcome,) = registry.sql(text)
        return int(outcome["plan"])

    def written(definition: int, **row: Any) -> bytes:
        return orjson.dumps(
            {"alert": "hot", "key": ["k"], "event_time": 0, "definition": definition, "row": row}
        )

    first, second = made(60, "seen"), made(70, "at")
    rows = [
        written(first, seen=1_500_000, at=7),
        written(second, seen=8, at=2_000_000),
        written(99, at=9),
    ]
    produce(fresh, rows)
    with watching(fresh, "--from-beginning") as watch:
        shown = [line.split("  k  ")[1].strip() for line in lines(watch, 3)]
    assert sorted(shown) == [
        "at=9",
        "seen=1970-01-01T00:00:01.500Z  at=7",
        "seen=8  at=1970-01-01T00:00:02.000Z",
    ]


def test_what_a_silence_covers_is_marked_as_long_as_it_does(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    registry.sql(
        "CREATE ALERT loud WITH (severity = 'page', labels = 'team=ops') AS SELECT k, v FROM air WHERE v > 1;"
    )
    wanted = {"severities": ["page"], "labels": {"team": ["ops"]}, "seconds": 3600}
    made = httpx.post(f"{registry.server.url}/v1/silences", json=wanted, timeout=40).json()
    produce(fresh, [alarm(1, "loud"), alarm(2, "hot")])
    with watching(fresh, "--from-beginning", "--json") as watch:
        assert "silenced" not in lines(watch, 1)[0]
    with watching(fresh, "--from-beginning") as watch:
        loud, hot = sorted(lines(watch, 2), key=lambda line: "n=2" in line)
        until = iso_text(made["until"], "seconds")
        assert loud.endswith(f"  n=1  (silenced until {until})\n") and "silenced" not in hot
        # The silence ends, and the command learns of it.
        assert registry.call("DELETE", f"/v1/silences/{made['id']}").is_success
        for number in range(3, 50):
            produce(fresh, [alarm(number, "loud")])
            (line,) = lines(watch, 1)
            assert f"n={number}" in line
            if "silenced" not in line:
                break
        else:
            raise AssertionError("it still marks alarms")

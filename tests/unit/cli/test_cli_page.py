"""The sample outputs of docs/cli.md are what the commands print, apart from numbers and widths of columns.

The registry is a real one without Kafka; edges, joiner and alerts service are their reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.cli.answering import answering
from tests.unit.cli.samples import masked, sample, samples
from tests.unit.registry.test_openapi import Made

from tamis.cli import main
from tamis.cli.shell.prompt import _PROMPT
from tamis.cli.shell.statements import results
from tamis.errors import SqlErrors
from tamis.messaging.heartbeats import JOINER, Heartbeat, SinkState
from tamis.messaging.records import Ack, Frontier, StreamState
from tamis.messaging.silences import Acknowledgement, Silence
from tamis.telemetry.server import HttpServer
from tamis.web.registry_client import RegistryClient, difference
from tamis_registry.http.documents.alerts import outcome_document
from tamis_registry.http.state.episodes import Event, open_episodes

SECOND = 1_000_000
MINUTE = 60 * SECOND
AIR = "CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts);\n"
CONDENSATION = "CREATE ALERT condensation"
REFUSED = "can't reach the MQTT broker at 10.0.0.7:1883: Connection refused"


def ran(*arguments: str) -> str:
    """What a command prints, on both outputs."""
    return CliRunner().invoke(main, arguments).output


@contextmanager
def served(made: Made) -> Iterator[str]:
    """The address of a registry."""
    server = HttpServer(made.app, "127.0.0.1", 0)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def shown(made: Made, *arguments: str) -> str:
    """What a command prints that asks a registry."""
    with served(made) as url:
        return ran(*arguments, "--registry", url)


def now() -> int:
    return time.time_ns() // 1000


def mistakes() -> str:
    Path("alerts.sql").write_text(f"{AIR}CREATE ALERT hot AS\nSELECT 1, tmep FROM air;\nDROP STREAM water;\n")
    Path("air.csv").touch()
    return ran("verify", "alerts.sql", "--input", "air=air.csv")


def unknown_alert() -> str:
    made = Made()
    made.sql(AIR + "CREATE ALERT condensation AS SELECT station FROM air WHERE temp > 5;")
    return shown(made, "get", "alerts", "condensaton")


def edges_with_a_source_that_fails() -> str:
    made = Made()
    made.sql(AIR)
    made.registry.hear(Ack("air:roof/http", "air", "roof", 0, 0, "waiting", now()), now())
    change = made.registry.tick(now())
    assert change
    made.registry.done(change, now())
    ack = Ack("air:roof/http", "air", "roof", made.registry.plan.version, now(), "active", now())
    made.registry.hear(Ack(**{**vars(ack), "failing": {"mqtt": REFUSED}}), now())
    return shown(made, "get", "edges")


def edge_without_shards() -> str:
    made = Made()
    made.registry.hear(Ack.of_edge("roof", now(), {"plant": REFUSED}), now())
    return shown(made, "get", "edges")


def joiner() -> str:
    made = Made()
    made.sql(AIR + "CREATE ALERT hot AS SELECT station FROM air WHERE temp > 5;")
    plan = made.registry.plan
    names = [topic.name for stream in plan.streams for topic in stream.topics]
    for partition in range(2):
        states = {name: StreamState(now(), 20, 0, False) for name in names}
        report = Frontier(partition, plan.version, states, {}, {}, 0, 0, now())
        made.registry.follow(report, now())
    made.registry.take_heartbeat(JOINER, Heartbeat(time=now()), now())
    return shown(made, "get", "joiner")


def plans() -> str:
    topics = ["tamis.stream.air.1", "tamis.stream.surface.1"]
    facts = {"definitions": ["condensation@2"], "topics": topics}
    found = [
        {
            "version": 3,
            "newest": True,
            "made": now(),
            "why": ["shard air:roof/air came"],
            "shards": 1,
            **facts,
        },
        {"version": 2, "newest": False, "made": now(), "why": [CONDENSATION], "shards": 0, **facts},
        {"version": 1, "newest": False, "made": now(), "why": ["the registry started"], "shards": 0}
        | {"definitions": [], "topics": []},
    ]
    with answering({"/v1/plans": found}) as url:
        return ran("get", "plans", "--registry", url)


def sinks() -> str:
    made = Made()
    waits = SinkState(waiting=3, oldest=now() - 100 * SECOND, error="ConnectError: Connection refused")
    beat = Heartbeat(time=now(), sinks={"log": SinkState(), "pager": waits})
    made.registry.take_heartbeat("alerts/a", beat, now())
    return shown(made, "get", "sinks")


def episodes() -> str:
    begin = now()
    events = [
        Event("condensation", ("k1",), "9d41e07a" * 4, "open", begin, begin + MINUTE, 12, "page", {}),
        Event("frost", ("k2",), "5f0c92ab" * 4, "opened", begin - MINUTE, begin, 3, None, {}),
    ]
    looked = Acknowledgement(episode=events[0].episode, by="ada", made=begin, until=begin + MINUTE)
    silence = Silence(id="s", start=begin, until=begin + MINUTE, alerts=("frost",))
    found = open_episodes(events, [silence], [looked], begin)
    with answering({"/v1/episodes": {"episodes": found, "complete": True, "read": 2}}) as url:
        return ran("get", "episodes", "--registry", url)


def pattern_file() -> str:
    Path("patterns").mkdir()
    Path("patterns/fault.csv").write_text("ts,v\n2026-01-31T12:00:00Z,0\n2026-01-31T12:00:02Z,4\n")
    Path("alerts.sql").write_text(
        f"{AIR}CREATE PATTERN fault FROM 'patterns/fault.csv' WITH (time = 'ts', step = '500 ms');\n"
        "CREATE ALERT hot AS SELECT station FROM air WHERE temp > 5;\n"
    )
    said = ran("explain", "alerts.sql")
    return "".join(line for line in said.splitlines(keepends=True) if line.startswith("patterns/"))


def mistake_in_the_shell() -> str:
    typed = "SELECT station, tmep\nFROM air WHERE temp > 30;"
    made = Made()
    made.sql(AIR)
    with served(made) as url, pytest.raises(SqlErrors) as mistake:
        list(results(RegistryClient(url), typed, None))
    prompts = [_PROMPT, "-> ".rjust(len(_PROMPT))]
    lines = [prompt + line for prompt, line in zip(prompts, typed.splitlines(), strict=True)]
    return "\n".join([*lines, f"Error: {mistake.value.shown}"])


def definition_that_stays() -> str:
    made = Made()
    hot = "ALERT hot AS SELECT station, temp FROM air WHERE temp >"
    made.sql(f"{AIR}CREATE {hot} 35;")
    made.sql(f"CREATE OR REPLACE {hot} 50;")
    file = f"\n\n{AIR}CREATE {hot} 35;"
    outcomes, _ = made.registry.apply(file, made.now, "alerts.sql", keep=True)
    kept = outcome_document(outcomes[-1], None, made.registry.view(made.now))
    return difference(kept, "http://127.0.0.1:8181")


def joiner_that_is_silent() -> str:
    made = Made()
    told = now() - 60 * SECOND
    made.registry.listen_anew(told)
    made.registry.take_heartbeat(JOINER, Heartbeat(time=told, host="node7", pid=4711), told)
    said = shown(made, "get", "joiner")
    return "".join(line for line in said.splitlines(keepends=True) if line.startswith("all: "))


OUTPUTS: dict[str, Callable[[], str]] = {
    "Error: alerts.sql:3:11": mistakes,
    "Error: there is no alert": unknown_alert,
    "EDGE  SHARD          STATE": edges_with_a_source_that_fails,
    "EDGE  SHARD         STATE": edge_without_shards,
    "JOINER": joiner,
    "all: the joiner": joiner_that_is_silent,
    "PLAN": plans,
    "SINK": sinks,
    "EPISODE": episodes,
    "patterns/fault.csv": pattern_file,
    "tamis> SELECT": mistake_in_the_shell,
    "alert 'hot' stays": definition_that_stays,
}
# tests/e2e/test_up.py compares this one, which needs a fleet.
OF_A_START = "kafka ready"


@pytest.mark.parametrize("beginning", OUTPUTS)
def test_a_sample_is_what_is_printed(beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert masked(OUTPUTS[beginning]()) == masked(sample(beginning))


def test_every_sample_of_the_page_is_compared() -> None:
    begun = [*OUTPUTS, OF_A_START]
    assert [sum(one.startswith(start) for start in begun) for one in samples()] == [1] * len(begun)

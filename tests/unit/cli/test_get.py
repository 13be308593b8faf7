"""`tamis get`: what it shows of the registry's answers."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner
from tests.unit.cli.answering import answering

from tamis.cli import main

SHARD = {
    "shard": "air:roof/mqtt",
    "state": "active",
    "plan": 3,
    "activation": 1_700_000_000_000_000,
    "why": "",
}
EDGE = {"name": "roof", "state": "active", "why": [], "shards": [SHARD]}


def get(edge: dict[str, Any]) -> list[str]:
    with answering({"/v1/edges": [edge]}) as url:
        result = CliRunner().invoke(main, ["get", "edges", "--registry", url])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()[1:]


def test_failing_sources_of_an_edge_have_lines_with_the_reason() -> None:
    shard, source = get({**EDGE, "failing": {"mqtt": "broker:1883: connection refused"}})
    assert shard.split() == ["roof", "air:roof/mqtt", "active", "3", "2023-11-14T22:13:20Z"]
    assert source.split(maxsplit=4)[:4] == ["roof", "source", "mqtt", "failing"]
    assert source.endswith("broker:1883: connection refused")


def test_an_edge_without_shards_has_a_line_of_its_own() -> None:
    why = ["edge roof has no shard: none of its sources has had a reading yet", "source mqtt fails: refused"]
    edge = {"name": "roof", "state": "waiting", "why": why, "failing": {"mqtt": "refused"}, "shards": []}
    itself, source = get(edge)
    assert itself.split(maxsplit=2) == ["roof", "waiting", why[0]]
    assert source.split() == ["roof", "source", "mqtt", "failing", "refused"]


def test_a_registry_of_an_older_release_names_no_failing_sources() -> None:
    assert len(get(EDGE)) == 1

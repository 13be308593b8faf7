"""Plans as an edge takes them up from Kafka and keeps them on disk, without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.edge.plans import TOPIC, air, entry, plan, topic

from tamis.messaging.plans import Newest
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.settings import KafkaSettings
from tamis_edge import plan_reader
from tamis_edge.plan_reader import PlanFile, PlanReader

NAMES = [f"{TOPIC}{number}" for number in range(20)]
PLAN = plan(air([topic([entry(1_000_000)], name) for name in NAMES]), ["air:e/http"], partitions=2)


class Topics:
    """Topics with their partition counts, which counts the requests for them."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts, self.requests = counts, 0

    def __call__(self) -> Mapping[str, int]:
        self.requests += 1
        return self.counts


def offered(topics: Topics, offer: Plan, path: Path) -> PlanReader:
    """A reader after a plan was offered to it."""
    reader = PlanReader(KafkaSettings(), PlanFile(path), topics, lambda: None)
    reader._offer(Newest(offer, encode_plan(offer)))
    return reader


def test_a_plan_of_many_topics_takes_one_request_for_their_partitions(tmp_path: Path) -> None:
    topics = Topics(dict.fromkeys(NAMES, 2))
    assert offered(topics, PLAN, tmp_path).plan == PLAN
    assert topics.requests == 1


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        (
            {**dict.fromkeys(NAMES, 2), NAMES[3]: 4},
            f"plan 1: topic {NAMES[3]} has 4 partitions, the plan says 2",
        ),
        (dict.fromkeys(NAMES[1:], 2), f"plan 1: topic {NAMES[0]} can't be found, the plan says 2"),
        ({}, f"plan 1: topic {NAMES[0]} can't be found, the plan says 2"),
    ],
)
def test_a_plan_whose_topics_have_other_partition_counts_is_refused(
    counts: Mapping[str, int], refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_reader, "RETRY", 0.0)
    reader = offered(Topics(counts), PLAN, tmp_path)
    assert (reader.plan, reader.refused) == (None, refused)


def test_a_plan_without_topics_takes_no_request(tmp_path: Path) -> None:
    topics = Topics({})
    empty = replace(PLAN, streams=())
    assert offered(topics, empty, tmp_path).plan == empty
    assert topics.requests == 0


def test_a_plan_on_disk_is_the_part_that_was_saved(tmp_path: Path) -> None:
    air = frozenset({"air"})
    file = PlanFile(tmp_path, air)
    assert file.load() is None
    file.save(file.cut(encode_plan(PLAN)))
    assert PlanFile(tmp_path, air).load() == PLAN
    # Cut for other streams it may lack some: only the plan of Kafka says what these are.
    assert PlanFile(tmp_path, frozenset({"air", "water"})).load() is None
    assert PlanFile(tmp_path).load() is None


def test_the_whole_plan_of_an_older_release_is_read_until_a_plan_is_saved(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(encode_plan(PLAN))
    water = PlanFile(tmp_path, frozenset({"water"}))
    assert water.load() == replace(PLAN, streams=(), since={}, shard_streams={})
    file = PlanFile(tmp_path, frozenset({"air"}))
    assert file.load() == PLAN
    file.save(file.cut(encode_plan(replace(PLAN, version=2))))
    assert file.load() == replace(PLAN, version=2)
    assert [one.name for one in tmp_path.iterdir()] == ["edge-plan.json"]


def test_a_damaged_plan_on_disk_is_read_from_kafka_again(tmp_path: Path) -> None:
    file = PlanFile(tmp_path)
    file.save(encode_plan(PLAN)[:-10])
    assert file.load() is None

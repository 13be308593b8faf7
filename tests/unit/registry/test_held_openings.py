"""Openings that silences hold back, from the records of the alerts service."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tamis.messaging.silences import Held, Silence, decode, encode
from tamis_registry.core.silences import HeldBack, HeldOpenings, held_back, held_opening

NOW = 100


def held(episode: str, sink: str = "pager", closed: int | None = None, **more: Any) -> Held:
    facts = {"alert": "hot", "key": ["k1"], "severity": "page", "labels": {"team": "ops"}, "row": {"t": 3.5}}
    counts = {"start": 1, "end": 2, "alarms": 3}
    event = {"event": "opened", "episode": episode, **counts, **facts, **more}
    return Held(sink=sink, partition=0, offset=1, event=event, closed=closed)


def silence(identity: str, start: int = 0, until: int = 500, **conditions: Any) -> Silence:
    return Silence(id=identity, start=start, until=until, **conditions)


def taken(*records: Held) -> HeldOpenings:
    found = HeldOpenings()
    for one in records:
        found.take(one.record_key, held_opening(one))
    return found


def test_a_silence_holds_back_an_opening_for_each_sink() -> None:
    openings = taken(held("a"), held("a", "chat"), held("b", alert="cold"), held("over", closed=7))
    silences = [
        silence("of hot", alerts=("hot",)),
        silence("of all", severities=("page",)),
        silence("of none", alerts=("hot",), keys=(("k2",),)),
        silence("pending", start=NOW + 1, severities=("page",)),
        silence("ended", until=NOW, severities=("page",)),
    ]
    assert held_back(silences, openings.of_sinks(None), NOW) == {
        "of hot": HeldBack(1, 2),
        "of all": HeldBack(2, 3),
        "of none": HeldBack(0, 0),
    }
    # A sink that was removed gets none.
    assert held_back(silences[:2], openings.of_sinks({"chat"}), NOW) == {
        "of hot": HeldBack(1, 1),
        "of all": HeldBack(1, 1),
    }
    openings.take(held("a").record_key, None)  # the sink got it, or the episode is over
    openings.take(held("a", "chat").record_key, held_opening(held("a", "chat", closed=9)))
    assert held_back(silences[:2], openings.of_sinks(None), NOW) == {
        "of hot": HeldBack(),
        "of all": HeldBack(1, 1),
    }


def test_counts_are_those_of_all_pairs_of_silences_and_openings() -> None:
    seeded, seen = random.Random(3), set()
    for _ in range(300):
        records = [
            held(f"e{seeded.randrange(4)}", seeded.choice("xy"), alert=seeded.choice(["hot", "dry"]))
            for _ in range(seeded.randrange(6))
        ]
        alerts = seeded.choice([None, ("hot",), ("dry", "hot"), ("hot", "hot"), ("wet",)])
        one = silence("s", seeded.choice([0, 200]), alerts=alerts)
        kept = {record.record_key: record for record in records}.values()
        covered = [r for r in kept if one.start <= NOW and r.event["alert"] in (alerts or ("hot", "dry"))]
        wanted = HeldBack(len({r.episode for r in covered}), len(covered))
        assert held_back([one], taken(*records).of_sinks(None), NOW).get("s", HeldBack()) == wanted
        seen.add(wanted)
    assert len(seen) > 5, "the cases differ"


@pytest.mark.parametrize(
    "value",
    [
        b"{}",
        encode(Held(sink="s", partition=0, offset=0, event={"episode": 3})),
        encode(held("a", labels={"team": 5})),
        encode(held("a", key="k1")),
        encode(held("b")),  # it has another key
    ],
)
def test_what_is_no_held_opening_is_refused(value: bytes) -> None:
    key = held("a").record_key
    with pytest.raises(ValueError, match=r"\w"):
        decode(key, value)
    assert decode(key, encode(held("a"))) == held("a")

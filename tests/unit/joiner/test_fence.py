"""Records of earlier owners of a shard behind its fence: the joiner leaves them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis_joiner.core.records.envelopes import Envelopes, Records, read_envelopes

VERSION = 2


def _tuple(shard: str, place: int, *, plan: int = VERSION, **more: Any) -> dict[str, Any]:
    return {"k": place, "_": {"shard": shard, "plan": plan, "activation": 0, "place": place, **more}}


def _fence(shard: str, number: int) -> dict[str, Any]:
    return {"_": {"kind": "fence", "shard": shard, "plan": VERSION, "fence": number}}


def _mark(kind: str, shard: str, **more: Any) -> dict[str, Any]:
    return {"_": {"kind": kind, "shard": shard, "plan": VERSION, **more}}


def _read(
    *documents: dict[str, Any], fences: dict[str, int] | None, dead: list[DeadLetter] | None = None
) -> Envelopes:
    at = np.arange(len(documents))
    records = Records("t", 0, [*map(orjson.dumps, documents)], at, at)
    letters: list[DeadLetter] = []
    found = read_envelopes(records, VERSION, letters, with_positions=True, fences=fences)
    if dead is None:
        assert not letters
    else:
        dead += letters
    return found


def test_tuples_of_earlier_owners_are_left_out_behind_a_fence() -> None:
    fences: dict[str, int] = {}
    found = _read(
        _tuple("a", 1),
        _fence("a", 7),
        _tuple("a", 2),
        _tuple("b", 3),
        _tuple("a", 4, fence=7),
        _tuple("a", 5, fence=6),
        _tuple("a", 6, fence=8),
        fences=fences,
    )
    assert [place for _, place in found.positions] == [1, 3, 4, 6]
    assert fences == {"a": 7}
    assert not _read(_tuple("a", 9), fences=fences).positions, "also in a later batch"


def test_so_is_their_progress_which_covers_tuples_that_were_left_out() -> None:
    found = _read(
        _fence("a", 7),
        _mark("progress", "a", event_time=5, place=9),
        _mark("progress", "a", event_time=4, place=8, fence=7),
        _mark("progress", "a", event_time=3),
        _mark("final", "a", fence=6),
        fences={},
    )
    # That of cuts has no place, and passes: they have numbers of their own.
    assert [record.event_time for record in found.progress] == [4, 3]


def test_the_registry_ends_a_shard_in_any_case() -> None:
    found = _read(_mark("final", "a"), fences={"a": 7})
    assert [record.kind for record in found.progress] == ["final"]


def test_a_lower_fence_is_no_way_back() -> None:
    fences = {"a": 7}
    _read(_fence("a", 3), fences=fences)
    assert fences == {"a": 7}


def test_tuples_that_wait_for_their_plan_were_compared_when_they_came() -> None:
    fences: dict[str, int] = {}
    first = _read(_tuple("a", 1, plan=VERSION + 1), _fence("a", 7), fences=fences)
    assert first.pending == [0]
    assert _read(_tuple("a", 1), fences=None).positions == [("a", 1)]
    late = _read(_tuple("a", 2, plan=VERSION + 1), fences=fences)
    assert not late.pending


@pytest.mark.parametrize("number", [None, -1, 2**60, "7", 7.5, True])
def test_a_fence_that_no_edge_writes_is_a_dead_letter(number: Any) -> None:
    dead: list[DeadLetter] = []
    document = _fence("a", 7)
    document["_"]["fence"] = number
    _read(document, fences={}, dead=dead)
    assert [letter.reason for letter in dead] == [Reason.FOREIGN]

"""Tuples of the usual form get the values that the general way gives, and others are left to it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest
from tests.stream_records import final_record, progress_record

from tamis.expressions.nodes import Type
from tamis.messaging.dead_letters import DeadLetter
from tamis.messaging.records import END_OF_TIME
from tamis_joiner.core.records import usual_tuples
from tamis_joiner.core.records.envelopes import Envelopes, Records, read_envelopes
from tamis_joiner.core.records.tuple_columns import TupleColumns, columns_of, tuple_columns

SCHEMA = {
    "k": Type.VARCHAR,
    "ts": Type.TIMESTAMP,
    "v": Type.DOUBLE,
    "n": Type.BIGINT,
    "i": Type.INT,
    "up": Type.BOOLEAN,
}
FIELDS = {"v": "value"}  # of a derived stream
VERSION = 7
Read = tuple[Envelopes, TupleColumns, list[DeadLetter]]


def read(values: list[bytes], time: str, usual: bool) -> Read:
    """What a group has of the values, decoded in one way or the other."""
    records = Records("t", 0, values, np.arange(len(values)) * 3, np.arange(len(values)) * 1000)
    dead: list[DeadLetter] = []
    columns = columns_of(SCHEMA, FIELDS) if usual else ()
    found = read_envelopes(records, VERSION, dead, columns=columns, time=time)
    return found, tuple_columns(found, SCHEMA, time, dead, FIELDS), dead


def same(values: list[bytes], time: str = "ts") -> int:
    """Compare both ways; returns how many tuples were decoded as usual ones."""
    (found, tuples, dead), (wanted, expected, letters) = read(values, time, True), read(values, time, False)
    assert (found.progress, found.pending) == (wanted.progress, wanted.pending)
    key = lambda letter: letter.offset  # noqa: E731
    assert sorted(dead, key=key) == sorted(letters, key=key)
    for name in ("times", "versions", "late", "arrived"):
        one, other = getattr(tuples, name), getattr(expected, name)
        assert one.dtype == other.dtype and one.tolist() == other.tolist(), name
    for name, vector in expected.columns.items():
        decoded = tuples.columns[name]
        assert decoded.data.dtype == vector.data.dtype
        # The text of a DOUBLE tells -0.0 from 0.0.
        assert repr(decoded.to_list()) == repr(vector.to_list()), name
        assert (decoded.null is None) == (vector.null is None)
    return 0 if found.usual is None else len(found.usual.rows)


def document(r: random.Random, odd: float) -> dict[str, Any]:
    """A tuple; some of its values are unusual or wrong, by the share `odd`."""
    found: dict[str, Any] = {
        "k": f"s{r.randrange(5)}",
        "ts": 1_700_000_000_000_000 + r.randrange(10**6),
        "value": r.choice((r.gauss(0, 1), r.randrange(100), 0.0, -0.0, round(r.gauss(0, 9), 2))),
        "n": r.randrange(-(10**9), 10**9),
        "i": r.randrange(100),
        "up": r.random() < 0.5,
    }
    strange = (
        None,
        "",
        'a"b',
        "ü",
        "\n",
        1,
        1.5,
        -(2**63),
        2**63 - 1,
        END_OF_TIME,
        -END_OF_TIME - 1,
        True,
        [1],
    )
    for name in list(found):
        if r.random() < odd:
            found[name] = r.choice((*strange, {"_": 1}, "2024-05-01T12:00:00Z", 5.0))
        elif r.random() < odd / 2:
            del found[name]
    return found


def record(r: random.Random, odd: float) -> bytes:
    """A record of a stream topic, as edges write it, or another one."""
    if r.random() < odd:
        return r.choice(
            (
                progress_record("a", 1, 0, 5),
                progress_record("a", VERSION + 1, 0, 5),
                final_record("a", 2),
                b"",
                b"{",
                b"[]",
                b'{,"_":{"shard":"a","plan":1}}',
                b'{"k":"x",,"_":{"shard":"a","plan":1}}',
                b'{"k":"x","_":{"shard":"a","plan":1},"ts":1}',
                b'{"_":{"plan":9},"k":"x","ts":5,"_":{"shard":"a","plan":1}}',
                b'{"k":"x","ts":5,"_":{"shard":"a","_":{"plan":1}}}',
                b'{"k":"x","ts":5,"_":[1]}',
                b'{"k":"x","ts":5 ,"_":{"shard":"a","plan":1}} ',
                b'{"k":",\\"_\\":{","ts":5,"_":{"shard":"a","plan":1}}',
            )
        )
    envelope: dict[str, Any] = {"shard": r.choice("ab"), "plan": r.randint(1, VERSION), "activation": 17}
    if r.random() < 0.3:
        envelope["late"] = True
    if r.random() < odd:
        envelope |= r.choice(
            ({"plan": VERSION + 1}, {"plan": "1"}, {"kind": "x"}, {"late": 1}, {"plan": True})
        )
    return orjson.dumps(document(r, odd) | {"_": envelope})


@pytest.mark.parametrize("time", ["ts", ""])
@pytest.mark.parametrize("seed", range(60))
def test_both_ways_give_the_same(seed: int, time: str) -> None:
    r = random.Random(seed)
    odd = r.choice((0.0, 0.02, 0.3))
    values = [record(r, odd) for _ in range(r.choice((1, 5, 300)))]
    if odd:
        for _ in range(len(values) // 4):
            row = r.randrange(len(values))
            changed = bytearray(values[row] or b" ")
            changed[r.randrange(len(changed))] = r.randrange(256)
            values[row] = bytes(changed)
    assert same(values, time) == len(values) or odd


def test_no_more_envelopes_are_remembered_than_a_few() -> None:
    """A sender chooses them."""
    most = usual_tuples.MOST_ENVELOPES
    values = [
        orjson.dumps({"k": "a", "ts": 1, "_": {"shard": str(number), "plan": 1}})
        for number in range(2 * most)
    ]
    assert same(values) == most


def test_topics_of_queries_that_count_need_positions() -> None:
    values = [orjson.dumps({"k": "a", "ts": 1, "_": {"shard": "a", "plan": 1, "place": 3}})]
    records = Records("t", 0, values, np.arange(1), np.arange(1))
    found = read_envelopes(records, 1, [], with_positions=True, columns=columns_of(SCHEMA), time="ts")
    assert found.usual is None and found.positions == [("a", 3)]

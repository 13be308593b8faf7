"""Payloads to columns: every mistake in a reading is named, and valid readings beside it are kept."""

from __future__ import annotations

import json
import random
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from tests.unit.edge.plans import air, topic

from tamis.expressions.nodes import Type
from tamis.messaging.dead_letters import Reason
from tamis_edge.decode.decoder import MAX_READING, Decoded, Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import RawColumns
from tamis_edge.sources.file_rows import typed

NOW = 1_700_000_000_000_000
COLUMNS = ("station", "ts", "temp", "site", "n", "ok")
GOOD: dict[str, Any] = {"station": "a", "ts": NOW, "temp": 20.5, "n": 3, "ok": True}


def decoder(unit: Any = "us", max_ahead: int | None = 60_000_000, **fields: str) -> Decoder:
    return Decoder(air([topic([])], columns=COLUMNS, max_ahead=max_ahead), FieldMap(fields, unit))


def decode(*readings: Any, by: Decoder | None = None) -> Decoded:
    payloads = [r if isinstance(r, bytes) else orjson.dumps(r) for r in readings]
    return (by or decoder()).payloads(payloads, NOW)


@pytest.mark.parametrize(("source", "expected"), [(None, "ms"), ("s", "s")])
def test_the_unit_of_times_is_that_of_the_source_or_else_of_the_stream(source: Any, expected: str) -> None:
    stream = replace(air([topic([])], columns=COLUMNS, max_ahead=60_000_000), time_unit="ms")
    by = Decoder(stream, FieldMap({}, source))
    number = NOW // {"s": 1_000_000, "ms": 1_000}[expected]
    decoded = decode({**GOOD, "ts": number}, {**GOOD, "ts": NOW}, by=by)
    assert by.unit == expected
    assert decoded.times.tolist() == [NOW]
    assert [one.reason for one in decoded.offences] == [Reason.OUT_OF_DOMAIN]


def _good(**fields: str) -> bytes:
    """A valid reading but for these fields, as JSON text."""
    texts = {name: orjson.dumps(value).decode() for name, value in GOOD.items()} | fields
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}").encode()


POISON = [
    (b"{", Reason.UNDECODABLE, "not JSON"),
    (b"", Reason.UNDECODABLE, "not JSON"),
    (b"\xff\xfe", Reason.UNDECODABLE, "not JSON"),
    (b"[1, 2]", Reason.UNDECODABLE, "array"),
    (b"7", Reason.UNDECODABLE, "number"),
    (b'"text"', Reason.UNDECODABLE, "string"),
    (b"null", Reason.UNDECODABLE, "null"),
    (b'{"a":1},{"b":2}', Reason.UNDECODABLE, "not JSON"),
    (b"[" * 100_000, Reason.UNDECODABLE, "nested more than 100 levels deep"),
    (b'{"a":' * 101 + b"1" + b"}" * 101, Reason.UNDECODABLE, "nested more than 100 levels deep"),
    (b'{"a":[' + b"[]," * 10_000 + b"1]}", Reason.UNDECODABLE, "10002 arrays and objects"),
    (b'{"a":[' + b"1," * 100_000 + b"1]}", Reason.UNDECODABLE, "100002 values; the limit is 100000"),
    ({**GOOD, "ts": None}, Reason.MISSING_FIELD, "ts: no value in field 'ts'"),
    ({k: v for k, v in GOOD.items() if k != "ok"}, Reason.MISSING_FIELD, "ok: no value in field 'ok'"),
    ({**GOOD, "temp": "20.5"}, Reason.WRONG_TYPE, 'temp: "20.5" is not of type DOUBLE'),
    ({**GOOD, "temp": True}, Reason.WRONG_TYPE, "temp: true is not of type DOUBLE"),
    ({**GOOD, "temp": {"value": 1}}, Reason.WRONG_TYPE, "temp"),
    ({**GOOD, "station": 7}, Reason.WRONG_TYPE, "station: 7 is not of type VARCHAR"),
    ({**GOOD, "n": 1.5}, Reason.WRONG_TYPE, "n: 1.5 is not of type BIGINT"),
    ({**GOOD, "n": 2**63}, Reason.WRONG_TYPE, "n: 9223372036854775808"),
    ({**GOOD, "ok": 1}, Reason.WRONG_TYPE, "ok: 1 is not of type BOOLEAN"),
    ({**GOOD, "ts": "yesterday"}, Reason.WRONG_TYPE, 'ts: "yesterday" is not an ISO 8601 time'),
    ({**GOOD, "ts": True}, Reason.WRONG_TYPE, "ts: true is not a TIMESTAMP"),
    ({**GOOD, "ts": 2**62}, Reason.OUT_OF_DOMAIN, "is it in us?"),
    ({**GOOD, "ts": -(2**63)}, Reason.OUT_OF_DOMAIN, "is it in us?"),
    ({**GOOD, "ts": "9999-01-01"}, Reason.OUT_OF_DOMAIN, "outside of the range of event times"),
    (
        {**GOOD, "temp": 70.5},
        Reason.OUT_OF_DOMAIN,
        "temp: 70.5 is outside of the column's domain, temp >= -60",
    ),
    (_good(temp="NaN"), Reason.NOT_A_NUMBER, "temp: NaN is not a finite number"),
    (_good(temp="nan"), Reason.NOT_A_NUMBER, "temp: NaN is not a finite number"),
    (_good(temp="-Infinity"), Reason.NOT_A_NUMBER, "temp: -Infinity is not a finite number"),
    (_good(temp="1e999"), Reason.NOT_A_NUMBER, "temp: Infinity is not a finite number"),
    (_good(temp="9" * 400), Reason.NOT_A_NUMBER, "temp: Infinity is not a finite number"),
    (_good(n="NaN"), Reason.NOT_A_NUMBER, "n: NaN is not a finite number"),
    (_good(ts="Infinity"), Reason.NOT_A_NUMBER, "ts: Infinity is not a finite number"),
    (_good(station="NaN"), Reason.NOT_A_NUMBER, "station: NaN is not a finite number"),
    (_good(ok="NaN"), Reason.NOT_A_NUMBER, "ok: NaN is not a finite number"),
    (_good(ok="NaN", other="[Infinity, {}]"), Reason.NOT_A_NUMBER, "ok: NaN"),
    (_good(temp='[NaN, "' + "x" * 100 + '"]'), Reason.WRONG_TYPE, "temp: [null,"),
    ({**GOOD, "site": "x" * MAX_READING}, Reason.TOO_LARGE, "bytes; the limit is"),
    (
        {**GOOD, "ts": NOW + 61_000_000},
        Reason.AHEAD_OF_CLOCK,
        "ts: 61.000 s (1.0 minutes) ahead of this edge's clock",
    ),
]


@pytest.mark.parametrize(("poison", "reason", "words"), POISON, ids=lambda value: str(value)[:30])
def test_poison_is_named_and_the_good_ones_around_it_come_through(
    poison: Any, reason: Reason, words: str
) -> None:
    decoded = decode(GOOD, poison, {**GOOD, "temp": -1})
    assert decoded.rows.tolist() == [0, 2]
    assert decoded.columns["temp"].to_list() == [20.5, -1.0]
    assert decoded.times.tolist() == [NOW, NOW]
    (offence,) = decoded.offences
    assert (offence.row, offence.reason) == (1, reason)
    assert words in offence.error


def test_numbers_that_are_not_finite_matter_only_in_columns_of_the_stream() -> None:
    decoded = decode(_good(other="NaN"), GOOD, _good(other='[{"deep": -Infinity}]', n="7"))
    assert decoded.offences == []
    assert decoded.columns["n"].to_list() == [3, 3, 7]


def test_nested_values_are_parsed_in_small_slices() -> None:
    """Their objects would take a hundred times the memory of the payloads."""
    nested = b'{"station":"a","ts":%d,"ok":true,"temp":[' % NOW + b"[]," * 9_000 + b"1]}"
    payloads = [nested] * 120
    tracemalloc.start()
    decoded = decode(*payloads, GOOD)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [one.reason for one in decoded.offences] == [Reason.WRONG_TYPE] * 120
    assert decoded.rows.tolist() == [120]
    assert most < 30e6


def test_all_poison_at_once() -> None:
    decoded = decode(*(poison for poison, _, _ in POISON), GOOD)
    assert [(o.row, o.reason) for o in decoded.offences] == [
        (i, reason) for i, (_, reason, _) in enumerate(POISON)
    ]
    assert decoded.rows.tolist() == [len(POISON)]


def test_payloads_that_are_json_only_together_are_refused() -> None:
    """Concatenated, the first three would be three objects."""
    decoded = decode(b'{"a":1},{"b":2}', b'{"x":[{"y":1}', b'{"z":1}]}', GOOD)
    assert [o.row for o in decoded.offences] == [0, 1, 2]
    assert decoded.rows.tolist() == [3]


def test_a_field_that_may_be_null_may_be_absent_or_null() -> None:
    decoded = decode({"ts": 1, "ok": False}, {**GOOD, "temp": None, "station": None})
    assert decoded.offences == []
    assert decoded.columns["temp"].to_list() == [None, None]
    assert decoded.columns["station"].to_list() == [None, None]


def test_whole_numbers_may_be_written_as_floats_and_doubles_as_integers() -> None:
    decoded = decode({**GOOD, "n": 5.0, "temp": 20}, {**GOOD, "n": None})
    assert decoded.columns["n"].to_list() == [5, None]
    assert decoded.columns["temp"].to_list() == [20.0, 20.5]


@pytest.mark.parametrize(
    ("value", "unit", "time"),
    [
        (1_700_000_000, "s", NOW),
        (1_700_000_000.25, "s", NOW + 250_000),
        (1_700_000_000_123, "ms", NOW + 123_000),
        (NOW, "us", NOW),
        (NOW * 1000 + 999, "ns", NOW),
        (-1, "ms", -1000),
        ("2023-11-14T22:13:20Z", "s", NOW),
        ("2023-11-14T22:13:20", "s", NOW),
        ("2023-11-14 22:13:20.5", "s", NOW + 500_000),
        ("2023-11-14t22:13:20.5z", "s", NOW + 500_000),
        ("2023-11-14T23:13:20.000001+01:00", "s", NOW + 1),
        ("2023-11-14T22:13:20.123456789Z", "s", NOW + 123_456),
        ("2023-11-14", "s", NOW - 80_000_000_000),
    ],
)
def test_times(value: Any, unit: Any, time: int) -> None:
    by = decoder(unit, max_ahead=None)
    assert decode({**GOOD, "ts": value}, by=by).times.tolist() == [time]
    # The same beside one that takes the batch off its fast path.
    assert decode({**GOOD, "ts": value}, {**GOOD, "ts": None}, by=by).times.tolist() == [time]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_is_judged_by_those_around_it(unit: Any) -> None:
    """Text and numbers in one batch: each form that is right by itself is taken, each other one is named."""
    given: list[Any] = [
        *("2026-01-31T06:30:15Z", "2026-01-31 06:30:15.123456789+02:00", "2026-01-31", "20260131"),
        *("0000-01-01", "2026-02-29", "noon", "", "1700000000", "2500-01-01"),
        *(1_700_000_000, 1_700_000_000_000_000, 2**63, -(2**63), 17.25, 5.0, True, [1], None),
        *(1e300, 1e303, -1.7e308),
    ]  # fmt: skip
    alone = {}
    for place, value in enumerate(given):
        found = decode({**GOOD, "ts": value}, by=decoder(unit, max_ahead=None))
        alone[place] = found.times.tolist() or [(o.reason, o.error) for o in found.offences]
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(50):
        picked = rng.choices(range(len(given)), k=rng.randrange(1, 12))
        by = decoder(unit, max_ahead=None)
        found = decode(*({**GOOD, "ts": given[place]} for place in picked), by=by)
        together = dict(zip(found.rows.tolist(), ([time] for time in found.times.tolist()), strict=True))
        together |= {o.row: [(o.reason, o.error)] for o in found.offences}
        assert [together[row] for row in range(len(picked))] == [alone[p] for p in picked], (seed, picked)
    assert sum(type(found[0]) is int for found in alone.values()) >= 7


def test_a_mapping_reaches_into_readings() -> None:
    by = decoder(temp="data.values.t", station="id")
    decoded = decode(
        {"id": "x", "ts": 1, "ok": True, "data": {"values": {"t": 3.5}}},
        {"id": "y", "ts": 1, "ok": True, "data": 7},
        by=by,
    )
    assert decoded.columns["temp"].to_list() == [3.5, None]
    assert decoded.columns["station"].to_list() == ["x", "y"]


def test_bytes_at_random_never_stop_it() -> None:
    r = random.Random(7)
    good = orjson.dumps(GOOD)
    for _ in range(300):
        payloads = []
        for _ in range(r.randint(1, 8)):
            payload = bytearray(good)
            for _ in range(r.choice([0, 0, 1, 3])):
                payload[r.randrange(len(payload))] = r.randrange(256)
            payloads.append(bytes(payload))
        decoded = decoder().payloads(payloads, NOW)
        bad = {offence.row for offence in decoded.offences}
        assert len(bad) == len(decoded.offences)
        assert bad | set(decoded.rows.tolist()) == set(range(len(payloads)))
        assert bad.isdisjoint(decoded.rows.tolist())
        assert set(range(len(payloads))) - bad >= {i for i, p in enumerate(payloads) if p == good}


def test_columns_of_a_table_are_checked_like_json() -> None:
    raw: dict[str, list[Any]] = {
        "station": ["a", None],
        "ts": [1, 2],
        "temp": [float("nan"), 3.0],
        "ok": [True, True],
    }
    decoded = decoder().columns(raw, 2, NOW)
    assert [(o.row, o.reason) for o in decoded.offences] == [(0, Reason.NOT_A_NUMBER)]
    assert decoded.columns["n"].to_list() == [None]


def test_a_row_of_a_table_is_not_longer_than_a_reading_may_be() -> None:
    cells: dict[str, list[Any]] = {
        "station": ["a", "b" * MAX_READING],
        "ts": [1, 2],
        "ok": [True, True],
        "site": ["x", "y"],
    }
    assert [(o.row, o.reason) for o in decoder().columns(cells, 2, NOW).offences] == [(1, Reason.TOO_LARGE)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_least_integer_is_no_time_in_any_unit(unit: Any) -> None:
    """Its absolute value is itself: taken as a time it would carry the watermark to the end."""
    decoded = decode({**GOOD, "ts": -(2**63)}, by=decoder(unit, max_ahead=None))
    assert [offence.reason for offence in decoded.offences] == [Reason.OUT_OF_DOMAIN]


def test_integers_beyond_64_bits_and_nan_in_tables_are_named_and_kept_whole() -> None:
    cells: dict[str, list[Any]] = {
        "station": ["a", "b", "c", "d"],
        "ts": [10**400, 1, 2, 3],
        "temp": [1.0, float("nan"), 10**400, 4.0],
        "n": [1, 2, 3, 2**70],
        "ok": [True, True, True, True],
    }
    numbers = np.arange(4)
    table = RawColumns(numbers, numbers, cells, 100)
    decoded = table.decode(decoder(), NOW)
    assert [(o.row, o.reason) for o in decoded.offences] == [
        (0, Reason.OUT_OF_DOMAIN),
        (1, Reason.NOT_A_NUMBER),
        (2, Reason.NOT_A_NUMBER),
        (3, Reason.WRONG_TYPE),
    ]
    for row in range(4):
        kept = json.loads(table.payload(row))
        assert str(kept) == str({name: values[row] for name, values in cells.items()})


def test_text_of_cells() -> None:
    assert typed(["1.5", None, "x", "nan"], Type.DOUBLE)[:3] == [1.5, None, "x"]
    assert typed(["1", "2.5", "x"], Type.BIGINT) == [1, 2.5, "x"]
    assert typed(["true", "F", "x"], Type.BOOLEAN) == [True, False, "x"]
    assert typed(["1700000000", "2023-11-14"], Type.TIMESTAMP) == [1_700_000_000, "2023-11-14"]
    assert typed(["1", ""], Type.VARCHAR) == ["1", ""]


def readings(draw: random.Random) -> list[bytes]:
    """Readings that the compiled decoder understands among others that it doesn't."""
    found = []
    for _ in range(draw.randrange(1, 40)):
        temp, site = draw.choice([1, -0.5, 1e-7, 71, None]), draw.choice(["x", "é", None])
        reading = GOOD | {"temp": temp, "site": site}
        poison, _, _ = draw.choice(POISON)
        kinds: list[Any] = [reading, reading, reading, reading | {"extra": [1]}, poison]
        found.append(draw.choice(kinds))
    return [one if isinstance(one, bytes) else orjson.dumps(one) for one in found]


def test_tuples_and_mistakes_are_the_same_with_and_without_the_compiled_decoder() -> None:
    draw = random.Random(6)
    flat, by_objects = decoder(), decoder()
    by_objects._flat_rows = None
    for _ in range(150):
        payloads = readings(draw)
        found, wanted = flat.payloads(payloads, NOW), by_objects.payloads(payloads, NOW)
        assert found.offences == wanted.offences
        assert found.rows.tolist() == wanted.rows.tolist()
        assert found.times.tolist() == wanted.times.tolist()
        for name, vector in wanted.columns.items():
            assert found.columns[name].to_list() == vector.to_list()
            assert found.columns[name].data.dtype == vector.data.dtype
            assert (found.columns[name].null is None) == (vector.null is None)


def test_the_compiled_decoder_pauses_where_it_understands_little() -> None:
    by = decoder()
    nested = [orjson.dumps({**GOOD, "extra": [1]})] * 3
    assert by._flat_rows is not None
    for _ in range(30):
        assert by.payloads(nested, NOW).rows.tolist() == [0, 1, 2]
    tried = [by._flat_rows.decode(nested) is not None for _ in range(42)]
    assert sum(tried) == 2


def test_two_values_with_a_comma_between_are_no_reading() -> None:
    for flat in (True, False):
        by = decoder()
        by._flat_rows = by._flat_rows if flat else None
        two = orjson.dumps(GOOD) + b"," + orjson.dumps(GOOD)
        for payloads in ([two], [orjson.dumps(GOOD), two]):
            decoded = by.payloads(payloads, NOW)
            assert len(decoded.rows) == len(payloads) - 1
            assert [one.reason for one in decoded.offences] == [Reason.UNDECODABLE]

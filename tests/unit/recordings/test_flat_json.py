"""The compiled decoder of flat JSON beside orjson and the conversion of single columns."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import NumberedTexts, Vector
from tamis.recordings.flat_json.columns import MOST_BYTES, FlatDecoder
from tamis.recordings.flat_json.text_table import MANY
from tamis.recordings.flat_json.tokens import MOST_EXPONENT, nearest
from tamis.recordings.json_values import convert
from tamis.recordings.times import TimeUnit

FIELDS = {
    "d": Type.DOUBLE,
    "i": Type.BIGINT,
    "n": Type.INT,
    "b": Type.BOOLEAN,
    "text": Type.VARCHAR,
    "ts": Type.TIMESTAMP,
    "größe": Type.DOUBLE,
}
DOCUMENT = (
    b'{"ts":1700000000000000,"d":20.25,"i":-7,"b":true,"text":"station-00042","other":"x","n":3,'
    b'"gr\xc3\xb6\xc3\x9fe":1.5}'
)


def expected(payload: bytes, unit: TimeUnit) -> dict[str, Vector] | None:
    """The values of one payload by way of objects; None if it is no reading without mistakes."""
    try:
        row = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    if type(row) is not dict:
        return None
    found = {name: convert(name, [row.get(name)], type_, unit) for name, type_ in FIELDS.items()}
    return None if any(misfits for _, misfits in found.values()) else {n: v for n, (v, _) in found.items()}


def bits(vector: Vector, row: int) -> Any:
    """A value that is equal only if all bits are; a NULL has none."""
    if vector.null is not None and vector.null[row]:
        assert vector.data.dtype != np.object_ or vector.data[row] is None
        return None
    value = vector.data[row]
    return struct.pack("d", value) if vector.data.dtype == np.float64 else (vector.data.dtype, value)


def compare(payloads: Sequence[bytes], unit: TimeUnit = "us") -> int:
    """Decode payloads together, and compare each that is understood; returns how many are."""
    vectors, understood = FlatDecoder(FIELDS, unit).decode(payloads)
    for row in np.flatnonzero(understood).tolist():
        wanted = expected(payloads[row], unit)
        assert wanted is not None, payloads[row]
        for name, vector in zip(FIELDS, vectors, strict=True):
            assert bits(vector, row) == bits(wanted[name], 0), (name, payloads[row])
    return int(understood.sum())


def numbers(draw: random.Random) -> Iterator[str]:
    """Numbers of JSON in all spellings, and some that are nearly numbers."""
    while True:
        whole = draw.choice(
            ["0", "-0", str(draw.randrange(10)), str(draw.getrandbits(draw.randrange(1, 70)))]
        )
        sign = draw.choice(["", "", "-"]) if whole[0] != "-" else ""
        fraction = draw.choice(["", f".{draw.getrandbits(draw.randrange(1, 64))}", ".0", ".000"])
        power = draw.choice(["", "", "", f"e{draw.randint(-90, 90)}", f"E+{draw.randint(0, 9)}", "e"])
        yield draw.choice(
            [sign + whole + fraction + power, repr(draw.uniform(-100, 100)), "01", "1.", ".5", "-"]
        )


def values(draw: random.Random) -> Iterator[str]:
    """Values of JSON, most of them flat."""
    number = numbers(draw)
    while True:
        yield draw.choice([
            next(number),
            next(number),
            f"{draw.choice([1, 1_000, 1_000_000]) * draw.randint(-4_000_000_000, 4_000_000_000)}",
            f'"2024-{draw.randint(0, 13):02}-{draw.randint(0, 32):02}T{draw.randint(0, 25):02}:00:59'
            f'{draw.choice(["", ".5", ".123456", ".1234567", "."])}{draw.choice(["", "Z", "+01:00"])}"',
            f'"{draw.choice(["", "a", "a b", "ä€😀", "x" * 40, chr(92) + "u00e4", chr(92) + "n"])}"',
            draw.choice(["true", "false", "null", "nul", "True", "NaN", "[1]", '{"d":1}', "[]", ""]),
        ])  # fmt: skip


def documents(draw: random.Random) -> Iterator[bytes]:
    """Objects with some of the fields, in any order and spacing."""
    value = values(draw)
    names = [*FIELDS, "other", "dd", "", "\\u0064", "text"]
    while True:
        space = draw.choice(["", "", " ", "\n\t", "\r"])
        fields = draw.sample(names, draw.randrange(len(names)))
        inner = f",{space}".join(f'"{name}"{space}:{space}{next(value)}' for name in fields)
        yield f"{space}{{{space}{inner}{space}}}{space}".encode()


def mutated(draw: random.Random, payload: bytes) -> bytes:
    """The payload with some bytes changed, removed or added."""
    found = bytearray(payload)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(found) + 1)
        found[at : at + draw.randrange(3)] = draw.choice(
            [
                b"",
                b'"',
                b"{",
                b"}",
                b",",
                b":",
                b"\\",
                b"\x00",
                b"\xff",
                b"\xc3",
                b"0",
                b"-",
                b".",
                b"e",
                b" ",
            ]
        )
    return bytes(found)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_objects_have_the_values_of_orjson(unit: TimeUnit) -> None:
    draw = random.Random(unit)
    document = documents(draw)
    understood = sum(compare([next(document) for _ in range(50)], unit) for _ in range(60))
    assert understood > 150


def test_hostile_bytes_are_left_to_orjson_or_have_its_values() -> None:
    draw = random.Random(2)
    # Few together: a byte that isn't UTF-8 leaves all that aren't ASCII to orjson.
    understood = sum(compare([mutated(draw, DOCUMENT) for _ in range(3)]) for _ in range(3_000))
    assert 500 < understood < 7_000


def test_pieces_of_documents_do_not_complete_each_other() -> None:
    pieces = [DOCUMENT[:at] for at in range(len(DOCUMENT))] + [
        DOCUMENT[at:] for at in range(1, len(DOCUMENT))
    ]
    random.Random(3).shuffle(pieces)
    assert compare(pieces) == 0
    assert compare([DOCUMENT[:-1], DOCUMENT, b"", DOCUMENT[1:], DOCUMENT]) == 2


def test_a_character_does_not_continue_in_the_next_payload() -> None:
    assert compare([b'{"text":"\xc3', b'\xa4"}', '{"text":"ä"}'.encode()]) == 1


@pytest.mark.parametrize(
    "payload",
    [
        b'{"d":1,"d":2}',
        b'{"i":1.0}',
        b'{"i":9223372036854775808}',
        b'{"ts":9007199254740991}',
        b'{"d":18446744073709551616}',
        b'{"d":1e400}',
        b'{"other":{"d":1}}',
        b'{"text":"\\n"}',
        b'{"d":1}x',
        b"[]",
        b"",
        b'{"text":"' + b"x" * MOST_BYTES + b'"}',
    ],
)
def test_the_rest_is_left_to_orjson(payload: bytes) -> None:
    assert compare([payload]) == 0


def test_what_readings_usually_have_is_understood() -> None:
    usual = [
        DOCUMENT,
        b' { "ts" : "2024-05-01T12:00:00.123456Z" , "d" : -0.0 , "b" : false , "text" : null } ',
        b'{"ts":"2024-02-29T23:59:59","d":36.600000000000001,"i":-9223372036854775807}',
        '{"text":"21 °C","größe":1e-7}'.encode(),
        b"{}",
    ]
    assert compare(usual) == len(usual)


def test_numbers_are_the_nearest_doubles() -> None:
    draw = random.Random(4)
    for _ in range(40_000):
        mantissa = draw.choice([draw.getrandbits(draw.randrange(1, 64)), draw.randrange(10**19)])
        exponent = (
            draw.randint(-MOST_EXPONENT, MOST_EXPONENT) if draw.random() < 0.5 else draw.randint(-20, 3)
        )
        assert nearest(np.uint64(mantissa), exponent) == float(f"{mantissa}e{exponent}")


def test_numbers_between_two_doubles_go_to_the_even_one() -> None:
    draw = random.Random(5)
    for _ in range(5_000):
        # Halfway between two neighbours of 54 bits, and times powers of ten where that is exact.
        middle = (draw.getrandbits(53) | 1 << 53) << 1 | 1
        for number in (middle, middle * 2, middle << draw.randrange(8)):
            assert nearest(np.uint64(number), 0) == float(number)
        tens = draw.randrange(1, 5)
        part = middle // 5**tens
        assert nearest(np.uint64(part), tens) == float(part * 10**tens)


def test_texts_that_never_come_again_take_bounded_memory() -> None:
    decoder = FlatDecoder({"text": Type.VARCHAR}, "us")
    for batch in range(12):
        texts = [f"message {batch} {number}" for number in range(10_000)]
        (vector,), understood = decoder.decode([orjson.dumps({"text": text}) for text in texts])
        assert understood.all() and vector.data.tolist() == texts
        assert decoder._table.ends[0] <= MANY


@pytest.mark.parametrize(("fields", "length"), [(1, 2_000), (60, 20)])
def test_texts_of_a_slice_that_no_table_takes_are_left(fields: int, length: int) -> None:
    """Few long texts, or many short ones: their bytes or their number are too many."""
    names = [f"f{number}" for number in range(fields)]
    decoder = FlatDecoder(dict.fromkeys(names, Type.VARCHAR), "us")
    rows = [{name: f"{row} {name}".ljust(length) for name in names} for row in range(1_000)]
    payloads = [orjson.dumps(row) for row in rows]
    for _ in range(2):
        vectors, understood = decoder.decode(payloads)
        assert 0 < understood.sum() < len(rows)
        for name, vector in zip(names, vectors, strict=True):
            left = [row[name] for row, good in zip(rows, understood, strict=True) if good]
            assert vector.take(understood).to_list() == left
    # And later texts are understood again.
    assert decoder.decode([orjson.dumps(dict.fromkeys(names, "short"))])[1].all()


def test_texts_keep_their_numbers_while_the_table_grows() -> None:
    decoder = FlatDecoder({"text": Type.VARCHAR}, "us")
    texts = [f"station-{number:06}" for number in range(20_000)]
    payloads = [orjson.dumps({"text": text}) for text in texts]
    numbers = []
    for _ in range(2):
        (vector,), understood = decoder.decode(payloads)
        assert understood.all() and vector.data.tolist() == texts
        assert isinstance(vector, NumberedTexts)
        numbers.append(vector.numbers.tolist())
    assert numbers[0] == numbers[1] and len(set(numbers[0])) == len(texts)


def test_payloads_in_a_buffer_are_decoded_as_those_in_a_list() -> None:
    draw = random.Random(3)
    payloads = [
        draw.choice((DOCUMENT, DOCUMENT[:-1], b"", b"{}", b'{"text":"%d"}' % number))
        for number in range(2_500)
    ]
    sizes = np.array([len(payload) for payload in payloads])
    one = FlatDecoder(FIELDS, "us").decode(payloads)
    other = FlatDecoder(FIELDS, "us").decode_buffer(np.frombuffer(b"".join(payloads), np.uint8), sizes)
    assert one[1].tolist() == other[1].tolist() and 0 < one[1].sum() < len(payloads)
    for vector, same in zip(one[0], other[0], strict=True):
        assert vector.take(one[1]).to_list() == same.take(one[1]).to_list()


def test_texts_with_equal_hashes_are_told_apart() -> None:
    decoder = FlatDecoder({"text": Type.VARCHAR}, "us")
    # All texts of a full table meet others in its slots.
    texts = [f"{number % 700}" for number in range(5_000)]
    (vector,), understood = decoder.decode([orjson.dumps({"text": text}) for text in texts])
    assert understood.all()
    assert vector.data.tolist() == texts

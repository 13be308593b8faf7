"""JSON of readings: numbers that aren't finite, and the structure of text."""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any

import orjson
import pytest

from tamis.recordings.json_structure import (
    MOST_CONTAINERS,
    MOST_DEPTH,
    MOST_VALUES,
    ComplexityError,
    check_complexity,
    lines,
    loads,
    parts,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NaN", math.nan),
        ("nan", math.nan),
        ("-nan", math.nan),
        ("Infinity", math.inf),
        ("+Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("inf", math.inf),
        ("-INF", -math.inf),
        ("1e999", math.inf),
        ("-1E+400", -math.inf),
        ("1" * 400, math.inf),
        ("-" + "9" * 5000 + ".5", -math.inf),
    ],
)
def test_numbers_that_are_not_finite_are_read_in_every_spelling(text: str, value: float) -> None:
    found = loads(b'{"v":%s,"n":[1,%s],"text":"a \\" NaN \\u00e9"}' % (text.encode(), text.encode()))
    assert str(found["v"]) == str(found["n"][1]) == str(value)
    assert (found["n"][0], found["text"]) == (1, 'a " NaN é')


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"NaN5",
        b"1NaN",
        b"--NaN",
        b"na",
        b'{"v":NaN',
        b'{"v":NaN,}',
        b"{NaN:1}",
        b'{"v":NaN "w":1}',
        b'{"v":NaN,"w":"\\ud800"}',
        b'{"v":NaN,"w":"\xff"}',
        b'{"v":NaN,"w":"a\nb"}',
        b'{"v":NaN,"w":"\\q"}',
        b'{"v":NaN,"w":01}',
        b'{"v":NaN,"w":"',
        b'{"v":NaN}'.decode().encode("utf-16"),
        b"01e999",
    ],
)
def test_text_that_is_not_json_stays_refused_beside_nan(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


def test_other_values_are_those_of_the_usual_parser() -> None:
    """The values beside a NaN don't depend on the parser that reads it."""
    draw = random.Random(3)
    for _ in range(2_000):
        values: list[Any] = [
            draw.choice([2**63, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**30, draw.randrange(100)]),
            draw.uniform(-1, 1) * 10.0 ** draw.randrange(-300, 300),
            draw.choice(["é", '"', "\\", "nan", "\u2028", "a\tb", None, True, {"a": []}]),
        ]
        text = b"%s" % json.dumps(values, ensure_ascii=draw.random() < 0.5).encode()
        found = loads(text[:-1] + b",NaN]")
        assert repr(found[:-1]) == repr(orjson.loads(text))


def test_no_text_takes_longer_than_its_length_allows() -> None:
    for text in (
        b'{"a":' + b'"\\' * 400_000,
        b"NaN" * 250_000,
        b"9" * 800_000,
        b"-" * 800_000,
        b"1e" * 400_000,
    ):
        start = time.process_time()
        with pytest.raises((orjson.JSONDecodeError, ComplexityError)):
            loads(text + b"]")
        assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 101 + b"]" * 101, "more than 100 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "more than 100 levels"),
        (b"[" + b"[]," * MOST_CONTAINERS + b"1]", "arrays and objects"),
        (b"[" + b"1," * MOST_VALUES + b"1]", "values"),
    ],
    ids=["arrays", "objects", "containers", "values"],
)
def test_text_that_would_take_long_is_refused(text: bytes, words: str) -> None:
    assert orjson.loads(text)
    with pytest.raises(ComplexityError, match=words):
        loads(text)


def test_brackets_in_strings_do_not_nest() -> None:
    check_complexity(b'{"a":"' + b"[" * 500 + b'\\"' + b"{" * 500 + b'"}')
    check_complexity(b"[" * MOST_DEPTH + b"]" * MOST_DEPTH)
    check_complexity(b'{"a":"' + b"," * 2 * MOST_VALUES + b'"}')


def _value(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.4:
        return draw.choice(["1", "-2.5e3", "null", '"x"', '"]\\""', '"{,"', '"é\\\\"', "[]", "{}", "[ ]"])
    inner = [_value(draw, depth - 1) for _ in range(draw.randrange(3))]
    if draw.random() < 0.5:
        return "[" + " ,\n".join(inner) + " ]"
    return "{ " + ",".join(f'"k{i}" : {one}' for i, one in enumerate(inner)) + "}"


def test_parts_of_arrays_are_those_of_a_parser() -> None:
    draw = random.Random(5)
    for _ in range(3_000):
        items = [_value(draw, 3) for _ in range(draw.randrange(5))]
        space = [draw.choice(["", " ", "\n", "\t\r\n"]) for _ in range(4)]
        text = space[0] + "[" + space[1] + (space[2] + "," + space[3]).join(items) + space[1] + "]" + space[0]
        assert orjson.loads(text) == [orjson.loads(item) for item in items]
        assert parts(text.encode(), 10) == ([item.encode() for item in items], True)
        assert parts(text.encode(), 2) == ([item.encode() for item in items[:2]], len(items) <= 2)


def test_parts_need_one_whole_value() -> None:
    for text in (
        b"",
        b" ",
        b"7",
        b"[",
        b"]",
        b"[]]",
        b"[[]",
        b"[1] 2",
        b'["]',
        b'["\n"]',
        b"{}{}",
        b'["\\"]',
    ):
        assert parts(text, 5) is None
    assert parts(b"[1,]", 5) == ([b"1", b""], True)
    assert parts(b"[,]", 5) == ([b"", b""], True)
    assert parts(b"{}", 5) == parts(b"[]", 5) == ([], True)


def test_lines_are_cut_and_counted() -> None:
    assert lines(b"", 5) == lines(b"\n \r\n\t", 5) == ([], True)
    assert lines(b" {}\r\n\n[1]", 5) == ([b"{}", b"[1]"], True)
    assert lines(b"1\n2\n3", 3) == ([b"1", b"2", b"3"], True)
    assert lines(b"1\n2\n3\n\n", 2) == ([b"1", b"2"], False)
    start = time.process_time()
    assert lines(b"\n" * 16_000_000, 100_000) == ([], True)
    assert time.process_time() - start < 2

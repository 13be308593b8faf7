"""Certificates of conditions with functions of text and time, of which nothing is proved themselves."""

from __future__ import annotations

import pytest
from tests.unit.certificates.practice import Condition, found

UNPROVED = "is a function of which nothing is proved"


def verdicts(streams: str, where: str) -> dict[str, str]:
    judged = Condition("", streams, where, {}, "").judged()
    return {omission.alias: found(omission) for omission in judged.omissions}


def test_text_is_part_of_the_omission_key() -> None:
    where = "a.v - b.v > 5 AND (a.name LIKE 'pump%' OR length(a.name) > b.n)"
    judged = Condition("", "a: v 0 100, name VARCHAR; b: v 0 100, n INT", where, {}, "").judged()
    of_a = next(omission for omission in judged.omissions if omission.alias == "a")
    assert found(of_a) == "a.v | above | monotone by rules of composition"
    assert "name" in of_a.key


def test_the_other_stream_keeps_its_omission() -> None:
    limit = "CASE WHEN extract(hour FROM b.seen) < 6 THEN 5 ELSE 10 END"
    assert verdicts("a: v 0 100; b: seen TIMESTAMP", f"a.v > {limit}")["a"].startswith("a.v | above")


@pytest.mark.parametrize(
    "where",
    [
        "CAST(a.v AS VARCHAR) = b.name",
        "CAST(a.v AS VARCHAR) LIKE '1%' OR b.name = 'x'",
        "length(CAST(a.v + b.v AS VARCHAR)) > 5",
        "extract(second FROM to_timestamp(a.v * b.v)) > 30",
        "CAST(substring(CAST(a.v AS VARCHAR), 1, length(b.name)) AS DOUBLE) IS NULL",
    ],
)
def test_a_number_inside_such_a_function_is_refused(where: str) -> None:
    assert UNPROVED in verdicts("a: v 0 100 NOT NULL; b: v 0 100, name VARCHAR", where)["a"]


def test_the_length_of_one_streams_text_is_a_number_like_others() -> None:
    found_of = verdicts("a: v 0 100; b: name VARCHAR", "length(CAST(a.v AS VARCHAR)) > length(b.name)")
    assert found_of["a"] == "length(CAST(a.v AS VARCHAR)) | above | monotone by rules of composition"


def test_a_number_from_text_is_a_number_like_others() -> None:
    found_of = verdicts("a: v VARCHAR; b: v 0 100", "CAST(a.v AS DOUBLE) - b.v > 5")
    assert found_of["b"] == "b.v | below | monotone by rules of composition"

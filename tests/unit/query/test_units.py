"""Durations, rates and times against exact fractions and the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.declarations.definitions import Rate
from tamis.declarations.units import UNITS, parse_duration, parse_rate, parse_timestamp
from tamis.errors import InputError


@given(st.integers(0, 10**6), st.integers(0, 10**6 - 1), st.sampled_from(sorted(UNITS)))
def test_a_duration_is_exact_or_refused(whole: int, fraction: int, unit: str) -> None:
    text = f"{whole}.{fraction:06d} {unit}"
    exact = (whole + Fraction(fraction, 10**6)) * UNITS[unit]
    if exact.denominator == 1 and exact <= 100 * 366 * UNITS["day"]:
        assert parse_duration(text) == exact
        assert parse_duration("-" + text.upper()) == -exact
    else:
        with pytest.raises(InputError):
            parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        "5",
        "s",
        "5 parsecs",
        "5s 6",
        "1 month",
        "2 years",
        "1e3 s",
        "5 s,",
        "--5s",
        "٣s",
        "1" * 99,
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_duration(text)
    assert raised.value.hint


def test_parts_add_up() -> None:
    assert parse_duration("1 day 2 hours 3min 4.5s 6ms 7us") == 93_784_506_007
    assert parse_duration("0") == 0


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/s", Rate(10, 10**6)),
        (" 5 / minute ", Rate(5, 60 * 10**6)),
        ("3/10s", Rate(3, 10**7)),
        ("1/1 hour 30 minutes", Rate(1, 5400 * 10**6)),
    ],
)
def test_rates(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "10", "10/", "/s", "0/s", "-1/s", "1.5/s", "10/0s", "10/-1s", "10/parsec", "a/s"]
)
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_rate(text)
    assert raised.value.hint


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-1439, 1439))
def test_times_of_any_zone(moment: datetime, minutes: int) -> None:
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert parse_timestamp(moment.isoformat()) == expected
    assert parse_timestamp(moment.isoformat(" ") + "Z") == expected
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    zoned = f"{moment.isoformat()}{sign}{hours:02d}:{rest:02d}"
    assert parse_timestamp(zoned) == expected - minutes * 60 * 10**6


@pytest.mark.parametrize("text", ["", "now", "2026", "2026-02-30", "25:00", "2026-01-01T00:00:00+99:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InputError):
        parse_timestamp(text)


def test_the_epoch() -> None:
    assert parse_timestamp(datetime.fromtimestamp(0, UTC).isoformat()) == 0

"""Omission over dates: their own unit counts, not that of the program that stored them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.omission import OmissionState, retained, retained_by_key

VALUES = [9.0, 1, 8, 2, 7, 9]
DATES = np.datetime64("2026-01-01T00:00:00", "s") + 10 * np.arange(6).astype("timedelta64[s]")
SPANS = [
    30_000_000,
    timedelta(seconds=30),
    np.timedelta64(30, "s"),
    np.timedelta64(30_000_000_000, "ns"),
    pd.Timedelta("30s"),
]


def as_read(unit: str) -> list[Any]:
    """A column of dates as the libraries have them."""
    array = DATES.astype(f"datetime64[{unit}]")
    utc, local = pd.Series(array).dt.tz_localize("UTC"), pd.Series(array).dt.tz_localize("Europe/Vienna")
    return [array, pd.Series(array), pd.DatetimeIndex(array), utc, local, pa.array(array)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("span", SPANS, ids=repr)
def test_dates_of_any_unit_are_those_of_whole_seconds(unit: str, span: Any) -> None:
    for sides in ("above", "both"):
        for delay in (None, 20):
            wanted = retained(np.arange(6) * 10, VALUES, 30, sides=sides, max_delay=delay).tolist()
            later = None if delay is None else timedelta(seconds=delay)
            for column in as_read(unit):
                assert retained(column, VALUES, span, sides=sides, max_delay=later).tolist() == wanted
                keys = np.zeros(6, np.int64)
                found = retained_by_key(keys, column, VALUES, span, sides=sides, max_delay=later)
                assert found.tolist() == wanted


def test_what_is_closer_than_a_microsecond_stays_apart() -> None:
    times = np.array([0, 1, 2, 1_003], "datetime64[ns]")
    values = [2.0, 1.0, 2.0, 2.0]
    assert retained(times, values, 1, sides="above").tolist() == [True, False, True, True]
    assert retained(times, values, np.timedelta64(1, "ns"), sides="above").tolist() == [True] * 4


@pytest.mark.parametrize(
    ("times", "span", "message"),
    [
        ([0, 1], timedelta(seconds=1), "is a duration, but the times are whole numbers"),
        (np.array(["2026-01-01", "NaT"], "datetime64[ns]"), 1, r"times\[1\]: a time is missing"),
        (np.array(["2026-01-01", "999999-01-01"], "datetime64[D]"), 1, "beyond what 64 bits"),
        (np.array([["2026-01-01"]], "datetime64[s]"), 1, "2 dimensions"),
        (np.array(["2026-01-01", "2026-01-02"], "datetime64[s]"), timedelta(seconds=-1), "interval is -1"),
    ],
)
def test_what_has_no_meaning_is_refused(times: Any, span: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        retained(times, [1.0, 2.0], span)


def test_columns_of_pandas_that_arrow_stores_are_dates() -> None:
    wanted = retained(DATES, VALUES, 30_000_000, sides="above").tolist()
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.timestamp("s", "Europe/Vienna")):
        column = pd.Series(pa.array(DATES).cast(kind).to_pandas()).astype(pd.ArrowDtype(kind))
        assert retained(column, VALUES, timedelta(seconds=30), sides="above").tolist() == wanted


@pytest.mark.parametrize("span", [np.timedelta64(20, "ns"), np.timedelta64(20, "s")], ids=repr)
def test_a_duration_of_numpy_is_no_number_of_ticks(span: Any) -> None:
    """NumPy counts durations among the whole numbers, and converts those in nanoseconds without a word."""
    with pytest.raises(InputError, match="is a duration, but the times are whole numbers"):
        retained([0, 10, 20], [2.0, 1.0, 2.0], span)
    with pytest.raises(InputError, match=r"the omission interval is .*give a whole number of ticks"):
        OmissionState(span)

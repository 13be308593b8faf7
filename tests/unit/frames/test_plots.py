"""Plots of retained readings: what is drawn, on which axes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

TIMES = [datetime(2024, 1, 1) + timedelta(seconds=10 * i) for i in range(6)]
AIR = pa.table({"station": ["n"] * 4 + ["s"] * 2, "ts": TIMES, "temp": [9.0, 1, 8, 2, 7, 9]})
SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, rh DOUBLE, note VARCHAR,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10);
CREATE STREAM surface (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10);
CREATE ALERT warm AS SELECT a.ts FROM air a JOIN surface s ON a.station = s.station
  AND s.ts BETWEEN a.ts - INTERVAL '15' SECOND AND a.ts + INTERVAL '15' SECOND WHERE a.temp - s.temp > 5;
"""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure outlives its test."""
    yield
    pyplot.close("all")


def numbers(column: Any) -> list[float]:
    """Numbers as they are, dates in microseconds."""
    array = np.asarray(column)
    dates = array.dtype.kind == "M"
    found: list[float] = (array.astype("datetime64[us]").astype(np.int64) if dates else array).tolist()
    return found


def drawn(axes: Axes, marker: str) -> list[tuple[float, float]]:
    """The points with this marker, in order of time."""
    lines = [line for line in axes.get_lines() if line.get_marker() == marker]
    pairs = (zip(numbers(line.get_xdata()), numbers(line.get_ydata()), strict=True) for line in lines)
    return sorted(pair for one in pairs for pair in one)


def points(rows: list[int]) -> list[tuple[float, float]]:
    times = numbers(np.array(TIMES, "datetime64[us]"))
    return [(times[row], AIR["temp"][row].as_py()) for row in rows]


def test_omission_is_drawn_as_omit_keeps() -> None:
    arguments: dict[str, Any] = {"value": "temp", "key": "station", "sides": "above"}
    axes = tamis.plot_omission(AIR, "30s", **arguments)
    kept = [TIMES.index(one) for one in tamis.omit(AIR, "30s", **arguments)["ts"].to_pylist()]
    assert 0 < len(kept) < 6
    assert drawn(axes, "o") == points(kept)
    assert drawn(axes, "x") == points([row for row in range(6) if row not in kept])
    assert axes.get_title().startswith(f"{len(kept)} of 6 readings retained")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ts", "temp")
    legend = axes.get_legend()
    assert legend is not None and [one.get_text() for one in legend.get_texts()] == ["n", "s"]


def test_given_axes_are_used_and_numbers_stay_numbers() -> None:
    _, axes = pyplot.subplots()
    frame = pd.DataFrame({"ts": [0.5, 1.5, 2.5], "v": [2, 1, 2]})
    assert tamis.plot_omission(frame, 2, value="v", sides="above", axes=axes) is axes
    assert drawn(axes, "o") == [(0.5, 2.0), (2.5, 2.0)] and drawn(axes, "x") == [(1.5, 1.0)]
    assert axes.get_legend() is None


def test_only_the_keys_with_the_most_readings_are_drawn() -> None:
    keys = [key for key in range(9) for _ in range(key + 1)]
    frame = pa.table({"k": keys, "ts": [*range(len(keys))], "v": [1.0] * len(keys)})
    axes = tamis.plot_omission(frame, 0, value="v", key="k")
    assert axes.get_title() == "39 of 39 readings retained (o), others omitted (x), 6 of 9 keys"


def test_readings_that_edges_drop_for_an_alert_are_crosses() -> None:
    temps = np.array([20.0, 10, 20, 10, 20, 20])
    frame = AIR.set_column(2, "temp", pa.array(temps)).set_column(0, "station", pa.array(["n"] * 6))
    frame = frame.append_column("rh", pa.array([None, *temps[1:]]))
    frame = frame.append_column("note", pa.array([""] * 6))
    axes = tamis.plot_retained(SQL, {"air": frame}, value="temp")
    dropped = tamis.explain(SQL, {"air": frame}).document()["queries"][0]["streams"][0]["measured"]["dropped"]
    assert len(drawn(axes, "x")) == dropped > 0 and len(drawn(axes, "o")) == 6 - dropped
    both = {"air": frame, "surface": frame}
    axes = tamis.plot_retained(SQL, both, stream="AIR", value="rh", query="warm")
    assert axes.get_ylabel() == "rh" and np.isnan(drawn(axes, "o")[0][1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"frames": {"air": AIR, "surface": AIR}, "value": "temp"},
            "stream: several streams; choose one of air, surface",
        ),
        (
            {"frames": {"air": AIR}, "value": "temp", "stream": "surface"},
            "stream: there is no frame of stream 'surface'; known names: air",
        ),
        (
            {"frames": {}, "value": "temp"},
            "frames: there is no frame to plot; give a frame of the stream",
        ),
        (
            {"frames": {"air": AIR}, "value": "tmp"},
            "value: stream air has no number 'tmp'; did you mean 'temp'?",
        ),
        (
            {"frames": {"air": AIR}, "value": "note"},
            "value: stream air has no number 'note'; known names: rh, temp",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::tamis.TamisWarning")
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tamis.InputError) as caught:
        tamis.plot_retained(SQL, **arguments)
    assert str(caught.value) == message

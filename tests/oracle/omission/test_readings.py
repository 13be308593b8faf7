"""Bracket omission on real readings: four motes' temperature and humidity, rounded by their sensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.omission.brute_force import Bools

from tamis.omission import OmissionState, Sides, Ties, retained, retained_by_key

READINGS = Path(__file__).parents[3] / "demo" / "data" / "suthaharan-single-hop.csv"
TIES: tuple[Ties, ...] = ("fewest", "strict")
Floats = npt.NDArray[np.float64]
SIDES: tuple[Sides, ...] = ("above", "below", "both")


@pytest.fixture(scope="module")
def table() -> Floats:
    rows: Floats = np.loadtxt(READINGS, delimiter=",", skiprows=1)
    assert rows.shape == (18914, 6)
    return rows


def sliding_extremes(values: Floats, width: int, sign: int) -> Floats:
    """The extreme of every window that holds `width` readings, or fewer at the ends."""
    edge = np.full(width - 1, -np.inf)
    padded = np.concatenate([edge, sign * values, edge])
    extremes: Floats = np.lib.stride_tricks.sliding_window_view(padded, width).max(axis=1)
    return extremes


def lacking(values: Floats, keep: Bools, interval: int, sides: Sides) -> int:
    """How many windows lack their extreme among what is retained.

    A mote takes one reading each tick: a window of length L holds L + 1 readings, or L when its ends lie
    between two.
    """
    wrong = 0
    for width in (interval, interval + 1):
        for sign in {"above": (1,), "below": (-1,), "both": (1, -1)}[sides]:
            masked = np.where(keep, values, -sign * np.inf)
            wrong += int(
                (sliding_extremes(values, width, sign) != sliding_extremes(masked, width, sign)).sum()
            )
    return wrong


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("interval", [2, 12, 60, 720])
@pytest.mark.parametrize("column", [3, 4])
def test_no_window_of_real_readings_lacks_its_extremes(
    table: Floats, column: int, interval: int, sides: Sides
) -> None:
    mote, reading, values = table[:, 1].astype(np.int64), table[:, 0].astype(np.int64), table[:, column]
    kept = {}
    for ties in TIES:
        keep = retained_by_key(mote, reading, values, interval, sides=sides, ties=ties)
        kept[ties] = keep.sum()
        for m in (1, 2, 3, 4):
            mine = mote == m
            assert (np.diff(reading[mine]) == 1).all()
            assert (
                keep[mine] == retained(reading[mine], values[mine], interval, sides=sides, ties=ties)
            ).all()
            assert lacking(values[mine], keep[mine], interval, sides) == 0
    assert kept["fewest"] < kept["strict"] <= len(values)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("batch", [97, 5000])
def test_as_a_stream_the_same_number_is_published(table: Floats, batch: int, sides: Sides) -> None:
    order = np.argsort(table[:, 0], kind="stable")
    mote, reading, values = (
        table[order, 1].astype(np.int64),
        table[order, 0].astype(np.int64),
        table[order, 4],
    )
    interval = 60
    for disorder in (0, 40):
        noise = np.random.default_rng(1).integers(0, disorder + 1, len(order))
        arrival = np.argsort(reading + noise, kind="stable")
        state, keep, most = OmissionState(interval, sides), np.zeros(len(order), np.bool_), 0
        for start in range(0, len(order), batch):
            ids = arrival[start : start + batch]
            state.offer(mote[ids], reading[ids], values[ids], np.arange(start, start + len(ids)), 0)
            most = max(most, int(reading[ids].max()))
            keep[arrival[state.decide(most - disorder, 0).published]] = True
        keep[arrival[state.decide(2**63 - 1, 0).published]] = True
        for m in (1, 2, 3, 4):
            assert lacking(values[mote == m], keep[mote == m], interval, sides) == 0
        fewest = retained_by_key(mote, reading, values, interval, sides=sides).sum()
        if disorder == 0:
            assert keep.sum() == fewest
        else:
            assert keep.sum() < 2 * fewest

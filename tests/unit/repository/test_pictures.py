"""Pictures of the explanations: their claims are true of their numbers, and the files have these numbers."""

from __future__ import annotations

import doctest
import re

import numpy as np
import pytest
from deploy.pictures import bound, brackets, cuts, look, repeats, sharing


def words(name: str) -> list[str]:
    """The texts of a picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", (look.IMAGES / name).read_text())


def test_the_brackets_join_every_partner_of_the_reading_between_them() -> None:
    found = brackets.computed()
    second, value = found.seconds, found.values
    before, at, after = found.before, found.omitted, found.after
    assert not found.retained[at] and found.retained[[before, after]].all()
    assert min(value[before], value[after]) > value[at]
    for partner in np.arange(second[at] - brackets.HALF, second[at] + brackets.HALF + 1):
        assert min(abs(partner - second[before]), abs(partner - second[after])) <= brackets.HALF
    # Every window of the interval's length keeps its highest reading.
    for begin in np.arange(second[0] - brackets.INTERVAL, second[-1] + 1):
        window = (begin <= second) & (second <= begin + brackets.INTERVAL)
        assert value[window].max() == value[window & found.retained].max()
    shown = (second >= brackets.FROM) & (second <= brackets.TO)
    texts = words("brackets.svg")
    assert f"published ({np.count_nonzero(shown & found.retained)})" in texts
    assert f"m: {value[at]:.2f} °C" in texts


def test_shared_readings_are_published_once() -> None:
    found = sharing.computed()
    temp, humidity = found.temp, found.humidity
    needed = {"hot": temp > 30, "damp": humidity > 75, "mould": (temp > 22) & (humidity > 65)}
    assert found.alone == {name: np.count_nonzero(rows) for name, rows in needed.items()}
    assert found.together == np.count_nonzero(needed["hot"] | needed["damp"] | needed["mould"])
    numbers = {*map(str, found.alone.values()), str(found.together), str(sum(found.alone.values()))}
    assert numbers <= set(words("sharing.svg"))


def test_the_memory_stays_below_the_bound() -> None:
    found = bound.computed(keys=2)
    everything, omitted = found.tuples.values()
    for way, counts in found.tuples.items():
        assert 0 < max(counts) <= found.bounds[way]
    # Only the silence of the partner lets the memory grow: one reading of each key a second.
    first, last = bound.BEFORE // bound.STEP, (bound.BEFORE + bound.STALL) // bound.STEP
    grown = everything[last - 1] - everything[first - 1]
    assert 2 * (bound.STALL - 2 * 30 - bound.STEP) <= grown <= 2 * bound.STALL
    assert everything[-1] == everything[first - 1]
    assert max(omitted) < max(everything) / 2
    assert "proved before the alert runs: at most 80,600 tuples" in words("bound.svg")


def test_each_reading_counts_once_though_an_edge_sends_it_again() -> None:
    found = repeats.computed()
    assert found.counted == repeats.ALL == len(set(found.places))
    assert found.before == repeats.SENT
    assert sum(found.again) == repeats.SENT - repeats.COMMITTED
    texts = words("repeats.svg")
    assert {"count(*) of this minute: 14", "counted (14)", "sent again, dropped (4)"} <= set(texts)


def test_each_reading_is_in_the_first_cut_that_covers_it() -> None:
    found = cuts.computed()
    covering = [found.cut_of(offset) for offset in range(cuts.ALL)]
    assert [covering.count(number) for number in range(len(found.corners))] == found.sent
    # The cut after the late reading came has it alone, and its event time is that of the cut before.
    late = covering[cuts.LATE_AT]
    assert late is not None
    assert found.sent[late] == 1
    assert found.corners[late][1] == found.corners[late - 1][1]
    assert found.corners == sorted(found.corners)
    texts = words("cuts.svg")
    assert {f"cut {number + 1} ({count})" for number, count in enumerate(found.sent)} <= set(texts)
    assert f"in open panes ({covering.count(None)})" in texts


@pytest.mark.parametrize("name", ["brackets.svg", "sharing.svg", "bound.svg", "repeats.svg", "cuts.svg"])
def test_pictures_are_small_and_have_colours_for_dark_pages(name: str) -> None:
    text = (look.IMAGES / name).read_text()
    assert len(text) < 150_000
    assert "prefers-color-scheme:dark" in text
    # Every colour is one that has another value in a dark page.
    _, drawing = text.split("</style>", 1)
    assert not re.search(r"(?:fill|stroke): #[0-9a-f]{6}", drawing)


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(look).attempted == 1
    assert doctest.testmod(look).failed == 0

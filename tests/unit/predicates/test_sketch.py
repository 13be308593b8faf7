"""Samples of a stream's rows: how close the shares are that they give, in one batch and merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tamis.errors import InputError
from tamis.predicates.parse import parse
from tamis.predicates.selectivity import Uniform, selectivity
from tamis.predicates.sketch import SIZE, Sketch, merge, observe

Columns = dict[str, npt.NDArray[np.generic]]
CONDITIONS = (
    "temp < 15",
    "temp > 18 AND humid",
    "site = 'b' OR temp IS NULL",
    "n >= 3",
    "temp BETWEEN 10 AND 20",
)


def rows(r: np.random.Generator, count: int, middle: float) -> Columns:
    temp = r.normal(middle, 5, count)
    temp[r.random(count) < 0.1] = np.nan
    return {
        "temp": temp,
        "humid": r.random(count) < 0.3,
        "site": np.array(["a", "b", "c"], np.object_)[r.integers(0, 3, count)],
        "n": r.poisson(2, count),
    }


def close(data: bytes, columns: Columns) -> None:
    """Each share within six of the sketch's standard deviations of the truth, where attributes are
    independent.
    """
    spread = Sketch.from_bytes(data).distributions()
    for sql in CONDITIONS:
        predicate = parse(sql)
        assert selectivity(predicate, spread) == pytest.approx(predicate.holds(columns).mean(), abs=0.08), sql


def test_a_batch_is_known_by_its_sketch() -> None:
    r = np.random.default_rng(3)
    columns = rows(r, 50_000, 15)
    data = observe(columns, r)
    close(data, columns)
    assert len(Sketch.from_bytes(data).numbers) == SIZE and len(data) < 40_000
    few = rows(r, 20, 15)
    found = Sketch.from_bytes(observe(few, r))
    assert found.count == 20 and sorted(found.values["n"]) == sorted(few["n"].tolist())


def test_merged_sketches_are_of_all_rows_whatever_their_order() -> None:
    """Batches of very different size and kind: each row counts the same."""
    r = np.random.default_rng(4)
    batches = [rows(r, count, middle) for count, middle in ((40_000, 10), (3_000, 25), (100, 40), (0, 0))]
    sketches = [observe(batch, r) for batch in batches]
    everything = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    at_once = merge(sketches)
    close(at_once, everything)
    by_two = merge([merge(sketches[2:]), merge(sketches[1::-1])])
    one, other = Sketch.from_bytes(at_once), Sketch.from_bytes(by_two)
    assert one.count == other.count == 43_100
    assert one.numbers == other.numbers and one.values["temp"] == other.values["temp"]
    assert Sketch.from_bytes(merge([])).count == 0


def test_an_attribute_that_is_lacking_is_null() -> None:
    r = np.random.default_rng(5)
    both = merge([observe({"a": np.ones(100)}, r), observe({"a": np.ones(100), "b": np.zeros(100)}, r)])
    assert Sketch.from_bytes(both).distributions()["b"].null == 0.5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"count": 1, "numbers": [0.5], "values": {"a": [1, 2]}}',
        b'{"count": 0, "numbers": [0.5], "values": {}}',
        b'{"count": 2, "numbers": [0.5, 0.6], "values": {"a": ["x", 2]}}',
        b'{"count": 1, "numbers": [0.5], "values": {"a": [{}]}}',
        b"[" * 100,
    ],
)
def test_what_is_no_sketch_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="no sketch of a stream"):
        merge([data])


def test_an_attribute_of_several_types_is_left_out() -> None:
    r = np.random.default_rng(9)
    both = merge([observe({"a": np.zeros(9), "b": np.ones(9)}, r), observe({"a": np.zeros(9, np.bool_)}, r)])
    found = Sketch.from_bytes(both)
    assert found.count == 18 and set(found.values) == {"b"}
    assert merge([both, observe({"b": np.ones(3)}, r)])


@pytest.mark.parametrize("ends", [(5, 1), (0, np.nan), (-np.inf, 0), (0, 1, 1.5), (0, 1, -0.1)])
def test_what_is_no_distribution_is_refused(ends: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="a distribution over"):
        Uniform(*ends)

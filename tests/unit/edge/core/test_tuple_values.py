"""The JSON of tuples, beside one call of the encoder for each tuple."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis_edge.core.records import encode

# The parts of JSON that could be taken for the places between values.
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",\\[]{}: null'), max_size=6)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.DOUBLE: st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.0, 1e16, 5e-324]),
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Type.TIMESTAMP: st.integers(-(2**53), 2**53),
    Type.BOOLEAN: st.booleans(),
    Type.VARCHAR: TEXT,
}


@st.composite
def column(draw: st.DrawFn, n: int) -> Vector:
    type_ = draw(st.sampled_from(sorted(VALUES)))
    one = VALUES[type_] | st.none() if draw(st.booleans()) else VALUES[type_]
    return Vector.from_list(draw(st.lists(one, min_size=n, max_size=n)), type_)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Vector], int]:
    n = draw(st.integers(0, 5))
    names = draw(st.lists(TEXT, unique=True, max_size=4))
    return {name: draw(column(n)) for name in names}, n


def one_by_one(values: dict[str, Vector], ends: list[bytes]) -> list[bytes]:
    columns = {name: vector.to_list() for name, vector in values.items()}
    rows = [{name: column[i] for name, column in columns.items()} for i in range(len(ends))]
    return [orjson.dumps(row)[:-1] + (end if row else end[1:]) for row, end in zip(rows, ends, strict=True)]


@given(tables())
def test_tuples_are_encoded_as_one_by_one(table: tuple[dict[str, Vector], int]) -> None:
    values, n = table
    ends = [b',"_":{"place":%d}}' % number for number in range(n)]
    found = encode(values, ends)
    assert found == one_by_one(values, ends)
    for i, value in enumerate(found):
        row = orjson.loads(value)
        assert row.pop("_") == {"place": i}
        assert row == {name: vector.to_list()[i] for name, vector in values.items()}


def test_quotes_and_commas_at_the_ends_of_texts_are_kept() -> None:
    texts = ['x",', '"y', ",", '","', "\\", '\\"']
    for first in texts:
        for second in texts:
            vector = Vector(np.array([first, second, "z"], np.object_))
            found = encode({"t": vector}, [b"}"] * 3)
            assert [orjson.loads(value)["t"] for value in found] == [first, second, "z"]

"""Functions of other systems are refused with what to write instead, unless the user defines them."""

from __future__ import annotations

import pytest

from tamis.errors import InputError
from tamis.query.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, SIMILARITY_FUNCTIONS, replacement
from tamis.query.parse import catalog_of
from tamis.query.unsupported import WINDOW_FUNCTIONS

STREAM = """CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
NAMES = ("hour", "date_diff", "timestampdiff", "if", "countif", "mean", "regr_slope", "rate", "had_changed")
BITS = ("bitand", "bit_xor", "get_bit", "bit_count", "shiftleft")


@pytest.mark.parametrize("name", [*NAMES, *BITS])
def test_it_is_named_with_what_to_write(name: str) -> None:
    with pytest.raises(InputError) as raised:
        catalog_of(f"{STREAM}CREATE ALERT q AS SELECT station, ts FROM air WHERE {name}(temp) > 3;")
    assert f"line 3, column 53: {name}() is a function of other systems; {replacement(name)}" == str(
        raised.value
    )


def test_a_function_of_the_user_comes_first() -> None:
    catalog = catalog_of(
        f"CREATE FUNCTION rate(x DOUBLE) RETURNS DOUBLE AS x / 60; {STREAM}"
        "CREATE ALERT q AS SELECT station, ts FROM air WHERE rate(temp) > 3;"
    )
    assert list(catalog.alerts) == ["q"]


def test_no_function_of_tamis_is_replaced() -> None:
    own = (*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS, *SIMILARITY_FUNCTIONS, *WINDOW_FUNCTIONS)
    assert [name for name in own if replacement(name) is not None] == []

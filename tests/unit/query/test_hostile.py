"""Hostile texts: the time of parsing grows no faster than the size of the text.

The limits are in processor time. They are a few times the time on a slow core, and a small part of the time
of an algorithm that isn't linear.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import MOST_SHOWN, parse
from tamis.query.syntax.text import LARGEST_TEXT, MOST_STATEMENTS, Text, split


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails if the code inside takes more processor time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@pytest.mark.parametrize("unit", [";", "\n;", " ; ;\t"])
def test_empty_statements_cost_nothing(unit: str) -> None:
    text = unit * (LARGEST_TEXT // len(unit))
    assert list(split(Text(text), [])) == []
    with within(2):
        assert parse(text, Catalog()) == []


@pytest.mark.parametrize("unit", ["a;", "'';", "/**/;"])
def test_a_text_has_only_so_many_statements(unit: str) -> None:
    with within(3), pytest.raises(SqlErrors) as raised:
        parse(unit * (LARGEST_TEXT // len(unit)), Catalog())
    (error,) = raised.value.errors
    assert f"more than {MOST_STATEMENTS} statements" in error.what and error.position is not None
    assert error.position.column == 1 + MOST_STATEMENTS * len(unit)


def test_a_long_cycle_of_functions_is_found_once() -> None:
    count = 8_000
    text = "".join(
        f"CREATE FUNCTION f{i:05}(x DOUBLE) RETURNS DOUBLE AS f{(i + 1) % count:05}(x);" for i in range(count)
    )
    with within(12), pytest.raises(SqlErrors) as raised:
        parse(text, Catalog())
    first = raised.value.errors[0]
    assert first.what.count("→") == MOST_SHOWN + 1
    assert first.what.endswith("f00009 → … → f00000")


def test_mistakes_grow_with_their_number_and_not_with_the_names_that_are_known() -> None:
    """Each unknown name listed all known ones: 24 MB for a text of 110 kB."""

    def size(columns: int) -> int:
        declared = ", ".join(f"column_number_{i} INT" for i in range(columns))
        streams = "".join(f"CREATE STREAM st{i} (v INT);" for i in range(columns))
        read = ", ".join(f"nix{i}" for i in range(50))
        text = f"CREATE STREAM s ({declared}); {streams} CREATE ALERT a AS SELECT {read} FROM s;"
        text += "".join(f"CREATE ALERT b{i} AS SELECT v FROM nix{i};" for i in range(50))
        with pytest.raises(SqlErrors) as raised:
            parse(text, Catalog())
        assert len(raised.value.errors) >= 100
        return sum(len(str(error)) for error in raised.value.errors)

    assert size(400) < 1.2 * size(100)

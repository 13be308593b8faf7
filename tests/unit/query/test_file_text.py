"""Hints about numbers with commas, encodings, and what separates the columns of a file."""

from __future__ import annotations

import pytest

from tamis.wording.file_text import encoding_problem, number_hint, separator_hint, wide_encoding


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1,5", "write a decimal point: 1.5"),
        ("-0,123", "write a decimal point: -0.123"),
        ("1,2345", "write a decimal point: 1.2345"),
        ("1234,567", "write a decimal point: 1234.567"),
        ("1,234", "write 1.234 if the comma is a decimal comma, and 1234 if it separates thousands"),
        (" -12,345 ", "write -12.345 if the comma is a decimal comma, and -12345 if it separates thousands"),
        ("1,234,567", "write 1234567"),
        ("1,234.5", "write 1234.5"),
        ("1.234,5", "write 1234.5"),
        ("1.234.567", "write 1234567"),
        ("1 234,5", "write 1234.5"),
        ("1\u202f234", "write 1234"),
        ("1'234.50", "write 1234.50"),
    ],
)
def test_a_number_with_commas_is_shown_as_it_should_be(text: str, hint: str) -> None:
    assert number_hint(text) == hint


@pytest.mark.parametrize(
    "text", ["", "noon", "1.5", "1.234", "12,34,56", "1,23.4", "1,234,56", "a,b", "1e3", ","]
)
def test_other_text_has_no_hint(text: str) -> None:
    assert number_hint(text) is None


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        *((f"utf-{width}{order}", f"UTF-{width}") for width in (16, 32) for order in ("", "-le", "-be")),
        *((narrow, None) for narrow in ("utf-8", "utf-8-sig", "ascii")),
    ],
)
def test_wide_encodings_are_found_with_and_without_a_byte_order_mark(encoding: str, name: str | None) -> None:
    assert wide_encoding("station,ts,temp\nk1,2026-01-01T00:00:00Z,21.5\n".encode(encoding)) == name
    assert wide_encoding(b"") is None


def test_bytes_that_are_not_utf8_are_named() -> None:
    assert encoding_problem("é".encode()) is None
    assert encoding_problem(b"a\nb\xe9") == (
        "it is not UTF-8: byte 4, in line 2",
        "save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8",
    )
    assert encoding_problem("aé".encode()[:2], cut=True) is None


def test_separators_other_than_commas_are_named() -> None:
    for header, name in (("a;b", "semicolons"), ("a\tb", "tabs"), ("a|b", "vertical bars")):
        assert (separator_hint([header]) or "").startswith(
            f"its columns are separated by {name}; write commas"
        )
    for names in (["a"], ["a;b", "c"], [], ["temp "]):
        assert separator_hint(names) is None

"""What queries over streams without time keep, as bytes: JSON with a version and the form of its query.

Numbers that may have more than 64 bits are hexadecimal text.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import orjson

from tamis.errors import RefusedError

VERSION = 2


def packed(form: Sequence[object], kept: Any) -> bytes:
    """`kept` with what it belongs to; both are of what JSON has."""
    return orjson.dumps({"version": VERSION, "form": form, "kept": kept})


def unpacked(state: bytes, form: Sequence[object]) -> Any:
    """What was packed for a query of the same form.

    Raises RefusedError where it is of another version or form.
    """
    found = orjson.loads(state)
    if found["version"] != VERSION:
        raise RefusedError(
            f"the state has version {found['version']}, not {VERSION}",
            where="standing query",
            hint="start the query afresh",
        )
    if found["form"] != orjson.loads(orjson.dumps(form)):
        raise RefusedError(
            "the state is of another query", where="standing query", hint="start the query afresh"
        )
    return found["kept"]


def number_text(number: int | Fraction) -> str:
    """A number of any size; a fraction has a slash.

    >>> number_text(-255), number_text(Fraction(1, 16))
    ('-ff', '1/10')
    """
    if isinstance(number, Fraction):
        return f"{number.numerator:x}/{number.denominator:x}"
    return f"{number:x}"


def number_of(text: str) -> int | Fraction:
    """The number of such a text."""
    if "/" in text:
        above, below = text.split("/")
        return Fraction(int(above, 16), int(below, 16))
    return int(text, 16)

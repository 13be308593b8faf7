"""State of standing queries as bytes: JSON with a version and the form of the query.

Numbers that may have more than 64 bits are hexadecimal text.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import orjson

from tamis.errors import RefusedError

VERSION = 2
_BEGIN_ANEW = "PAUSE ALERT and RESUME ALERT begin with empty state"


def pack_state(form: Sequence[object], kept: Any) -> bytes:
    """The bytes of a state with the form of its query; both must be JSON values."""
    return orjson.dumps({"version": VERSION, "form": form, "kept": kept})


def unpack_state(state: bytes, form: Sequence[object]) -> Any:
    """The state of a query of this form.

    Raises RefusedError if the state has another version or form.
    """
    document = orjson.loads(state)
    if document["version"] != VERSION:
        raise RefusedError(
            f"the state has version {document['version']}, not {VERSION}",
            where="standing query",
            hint=_BEGIN_ANEW,
        )
    if document["form"] != orjson.loads(orjson.dumps(form)):
        raise RefusedError(
            "the saved state is of another query, or of a version that evaluated this query in another way",
            where="standing query",
            hint=_BEGIN_ANEW,
        )
    return document["kept"]


def number_to_text(number: int | Fraction) -> str:
    """A number of any size as hexadecimal text; a fraction has a slash.

    >>> number_to_text(-255), number_to_text(Fraction(1, 16))
    ('-ff', '1/10')
    """
    if isinstance(number, Fraction):
        return f"{number.numerator:x}/{number.denominator:x}"
    return f"{number:x}"


def number_from_text(text: str) -> int | Fraction:
    """The number that `number_to_text` has written."""
    if "/" in text:
        above, below = text.split("/")
        return Fraction(int(above, 16), int(below, 16))
    return int(text, 16)

"""JSON of readings as objects of Python, with the numbers that aren't finite, which many senders write.

JSON has no NaN and no Infinity, but programs in Python, C and Java write them: `NaN`, `nan`, `-Infinity`,
`inf`, or a number such as 1e999. They become floats that aren't finite, so that the column with the number
can be named and the other readings beside it are kept.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from tamis.recordings.json_structure import MOST_CONTAINERS, check_complexity


def loads(text: bytes, containers: int = MOST_CONTAINERS) -> Any:
    """The value of a JSON text with at most so many arrays and objects, as `orjson` reads it.

    >>> loads(b'{"a": NaN, "b": [-inf, 1e999], "c": "NaN"}')
    {'a': nan, 'b': [-inf, inf], 'c': 'NaN'}

    Raises:
        orjson.JSONDecodeError: it isn't JSON.
        ComplexityError: it nests too deeply, or has too many values.
    """
    check_complexity(text, containers)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        strict = _TOKEN.sub(_finite, text)
        # The other parser accepts more than JSON.
        if strict == text or not _is_json(strict):
            raise error from None
    return json.loads(_TOKEN.sub(_standard, text).decode(), parse_int=_whole)


# Strings, also one that isn't closed; numbers, and the names of those that aren't finite. Nothing in it goes
# back, so that no text takes longer than its length.
_TOKEN = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[-+]?(?:nan|inf(?:inity)?)\b|-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:e[-+]?\d++)?',
    re.IGNORECASE | re.DOTALL,
)


def _standard(token: re.Match[bytes]) -> bytes:
    """A number that isn't finite in the spelling of JavaScript; other tokens as they are."""
    word = token[0].lstrip(b"+-")[:1].lower()
    if word == b"n":
        return b"NaN"
    return (
        b"-Infinity" if word == b"i" and token[0][:1] == b"-" else b"Infinity" if word == b"i" else token[0]
    )


def _finite(token: re.Match[bytes]) -> bytes:
    """NULL in place of a number that isn't finite."""
    text = token[0]
    return text if text[:1] == b'"' or math.isfinite(float(text)) else b"null"


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _whole(digits: str) -> int | float:
    """An integer, as `orjson` reads it: a float beyond 64 bits."""
    whole = int(digits) if len(digits) <= 20 else None
    return whole if whole is not None and -(2**63) <= whole < 2**64 else float(digits)

"""Structure of JSON text without its values: how deep it nests, and where its parts begin and end.

No objects are made, so that text of megabytes takes milliseconds and no memory, whatever it has. Brackets of
both kinds count alike: text that isn't JSON is left to the parser.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.errors import TamisError
from tamis.kernels import njit

MOST_DEPTH = 100
"""Nested arrays and objects of a reading, as of the types of Avro."""
MOST_CONTAINERS = 10_000
"""Arrays and objects of a reading: each takes 56 bytes and more, and a microsecond."""
MOST_VALUES = 100_000
"""Values of a reading."""


class ComplexityError(TamisError):
    """A JSON text nests too deeply, or has too many values."""


def check_complexity(text: bytes, containers: int = MOST_CONTAINERS) -> None:
    """Raises ComplexityError for text that would take much time or memory to parse. `containers`: the most
    arrays and objects.

    >>> check_complexity(b"[" * 200)
    Traceback (most recent call last):
    tamis.recordings.json_structure.ComplexityError: nested more than 100 levels deep
    """
    # Most readings have too few bytes and brackets to need more than these counts.
    if len(text) <= MOST_VALUES and text.count(b"[") + text.count(b"{") <= MOST_DEPTH:
        return
    depth, found, values = _complexity(_buffer(text))
    if depth > MOST_DEPTH:
        raise ComplexityError(f"nested more than {MOST_DEPTH} levels deep")
    if found > containers:
        raise ComplexityError(f"{found} arrays and objects; the limit is {containers}")
    if values > MOST_VALUES:
        raise ComplexityError(f"{values} values; the limit is {MOST_VALUES}")


def parts(text: bytes, most: int) -> tuple[list[bytes], bool] | None:
    """The parts between the commas of an array or object, without white space around them, and whether they
    are all; at most `most`. None if the text isn't one whole array or object.

    >>> parts(b' [{"a": [1, 2]}, "]" ] ', 10)
    ([b'{"a": [1, 2]}', b'"]"'], True)
    >>> parts(b"[1] [2]", 10) is None
    True
    """
    bounds = np.empty((min(most, len(text)) + 1, 2), np.int64)
    found = _parts(_buffer(text), bounds)
    return None if found < 0 else (_cut(text, bounds[: min(found, most)]), found <= most)


def lines(text: bytes, most: int) -> tuple[list[bytes], bool]:
    """The lines that aren't blank, without white space around them, and whether they are all; at most `most`.

    >>> lines(b'{}\\n\\n [1] \\r\\n', 10)
    ([b'{}', b'[1]'], True)
    """
    bounds = np.empty((min(most, len(text)) + 1, 2), np.int64)
    found = _lines(_buffer(text), bounds)
    return _cut(text, bounds[: min(found, most)]), found <= most


def _cut(text: bytes, bounds: NDArray[np.int64]) -> list[bytes]:
    limits: Sequence[Sequence[int]] = bounds.tolist()
    return [text[start:end] for start, end in limits]


def _buffer(text: bytes) -> NDArray[np.uint8]:
    # Of a bytearray, because compiled kernels take no array that is read-only.
    return np.frombuffer(bytearray(text), np.uint8)


@njit(cache=True)
def _blank(byte):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return byte == 32 or 9 <= byte <= 13


@njit(cache=True)
def _string_end(buffer, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The position behind a string whose opening quote is at `at`; -1 if no quote closes it in its line."""
    at += 1
    while at < len(buffer) and buffer[at] != 34 and buffer[at] >= 32:
        at += 2 if buffer[at] == 92 else 1
    return at + 1 if at < len(buffer) and buffer[at] == 34 else -1


@njit(cache=True, nogil=True)
def _complexity(buffer):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The deepest nesting, the number of arrays and objects, and the number of values. An empty one counts as
    one with a value.
    """
    at = depth = deepest = containers = commas = 0
    while 0 <= at < len(buffer):
        byte = buffer[at]
        if byte == 34:
            at = _string_end(buffer, at)
            continue
        if byte in (91, 123):
            depth += 1
            containers += 1
            deepest = max(deepest, depth)
        elif byte in (93, 125):
            depth -= 1
        elif byte == 44:
            commas += 1
        at += 1
    return deepest, containers, commas + containers


@njit(cache=True, nogil=True)
def _parts(buffer, bounds):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of parts, and their bounds as far as there is room; -1 if the text isn't one whole value.
    It stops at the first part without room.
    """
    at, end, found = 0, len(buffer), 0
    while at < end and _blank(buffer[at]):
        at += 1
    while end > at and _blank(buffer[end - 1]):
        end -= 1
    if end - at < 2 or (buffer[at] != 91 and buffer[at] != 123):
        return -1
    depth, start, last = 0, -1, 0
    while 0 <= at < end:
        byte = buffer[at]
        opens, closes = byte in (91, 123), byte in (93, 125)
        ends = depth == 1 and (closes or byte == 44)
        if ends:
            if start >= 0 or byte == 44 or found > 0:
                bounds[found, 0], bounds[found, 1] = max(start, 0), last if start >= 0 else 0
                found += 1
                if found == len(bounds):
                    return found
            start = -1
        elif depth > 0 and not _blank(byte):
            if start < 0:
                start = at
            last = at + 1
        if opens:
            depth += 1
        elif closes:
            depth -= 1
            if depth == 0:
                return found if at == end - 1 else -1
        if byte == 34:
            at = _string_end(buffer, at)
            last = at
        else:
            at += 1
    return -1


@njit(cache=True, nogil=True)
def _lines(buffer, bounds):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of lines that aren't blank, and their bounds as far as there is room. It stops at the first
    line without room.
    """
    found, start, last = 0, -1, 0
    for at in range(len(buffer) + 1):
        if at == len(buffer) or buffer[at] == 10:
            if start >= 0:
                bounds[found, 0], bounds[found, 1] = start, last
                found += 1
                if found == len(bounds):
                    break
            start = -1
        elif not _blank(buffer[at]):
            if start < 0:
                start = at
            last = at + 1
    return found


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

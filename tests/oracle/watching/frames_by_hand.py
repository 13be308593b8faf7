"""The values of window functions by following every reading from its arrival on, in exact arithmetic.

Shares with Tamis the window functions and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import inf
from typing import Any

from tests.oracle.watching.brute_force import Reading, released

from tamis.declarations.watches import WindowFunction

_DIGITS = Context(prec=60)


def values(
    function: WindowFunction,
    readings: Sequence[Reading],
    delay: int,
    arguments: Sequence[Any],
    defaults: Sequence[Any],
) -> list[Any]:
    """The value for each reading, None for NULL. `arguments` are the values of the function's argument."""
    found: list[Any] = [None] * len(readings)
    series: dict[tuple[int, Any], list[int]] = defaultdict(list)
    for number in released(readings, delay)[0]:
        reading = readings[number]
        so_far = series[reading.file, reading.key]
        so_far.append(number)
        frame = [
            arguments[one]
            for before, one in enumerate(reversed(so_far))
            if before >= function.frame.last
            and (function.frame.first is None or before <= function.frame.first)
            and reading.time - readings[one].time <= function.frame.span
        ]
        found[number] = _value(function.function, frame, defaults[number])
    return found


def _value(name: str, newest_first: Sequence[Any], default: Any) -> Any:
    if name == "lag":
        return newest_first[0] if newest_first else default
    if name in ("first_value", "last_value"):
        return None if not newest_first else newest_first[-1 if name == "first_value" else 0]
    known = [value for value in newest_first if value is not None]
    if name == "count":
        return len(known)
    if not known:
        return None
    if name in ("min", "max"):
        return min(known) if name == "min" else max(known)
    whole = isinstance(known[0], int)
    exact = [Fraction(value) for value in known]
    total = sum(exact, Fraction())
    if name == "sum":
        return int(total) if whole and abs(total) < 2**63 else _rounded(total)
    if name == "avg":
        return _rounded(total / len(exact))
    divisor = len(exact) - (0 if name.endswith("_pop") else 1)
    if divisor == 0:
        return None
    variance = sum(((value - total / len(exact)) ** 2 for value in exact), Fraction()) / divisor
    return _rounded(variance) if name.startswith("var") else _root(variance)


def _rounded(exact: Fraction) -> float | None:
    try:
        found = exact.numerator / exact.denominator
    except OverflowError:
        return None
    return found if abs(found) < inf else None


def _root(exact: Fraction) -> float:
    quotient = _DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return float(quotient.sqrt(_DIGITS))

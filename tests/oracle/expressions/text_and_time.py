"""Functions of text and time, and operators of bits, for one value, in plain Python without code of Tamis."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
MOST = 2**32 - 1
FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def computed(op: str, args: list[Any]) -> Any:
    """The value of a function of text or time, or of an operator of bits, of arguments that aren't NULL."""
    match op:
        case "&":
            return args[0] & args[1]
        case "|":
            return args[0] | args[1]
        case "xor":
            return args[0] ^ args[1]
        case "~":
            return -1 - args[0]
        case ">>":
            return args[0] // 2 ** args[1] if 0 <= args[1] < 64 else 0
        case "<<":
            if args[0] < 0 or args[1] < 0 or (args[0] and args[1] >= 64):
                return None
            shifted = args[0] * 2 ** min(args[1], 64)
            return shifted if shifted < 2**63 else None
        case "lower" | "upper":
            return "".join(_case(letter, op) for letter in args[0])
        case "length":
            return len(args[0])
        case "trim" | "ltrim" | "rtrim":
            return _trimmed(args[0], op, *args[1:])
        case "substring":
            return _substring(*args)
        case "||":
            return args[0] + args[1]
        case "like":
            return _like(*args)
        case "to_varchar":
            return str(args[0]).lower() if isinstance(args[0], bool) else str(args[0])
        case "to_double":
            value = float(args[0]) if FLOAT.fullmatch(args[0]) else math.nan
            return value if math.isfinite(value) else None
        case "to_whole":
            return _whole(args[0])
        case "epoch":
            return args[0] / 1e6
        case "to_timestamp":
            return round(float(args[0]) * 1e6) if FIRST <= float(args[0]) * 1e6 < LAST + 1 else None
    time = args[-1]
    if not FIRST <= time <= LAST:
        return None
    moment = EPOCH + timedelta(microseconds=time)
    if op == "time_to_varchar":
        text = moment.strftime("%m-%d %H:%M:%S")
        rest = f".{moment.microsecond:06}".rstrip("0").rstrip(".")
        return f"{moment.year:04}-{text}{rest}"
    return _part(args[0], moment) if op == "date_part" else _start(args[0], moment)


def _whole(text: str) -> int | None:
    """The nearest whole number, a half away from zero."""
    if not FLOAT.fullmatch(text):
        return None
    value = Fraction(text.rstrip(".").replace(".e", "e").replace(".E", "E"))
    before = re.split("[.eE]", text.lstrip("+-"))[0]
    if int(before or 0) > 2**63 - (not text.startswith("-")):
        return None
    whole = math.floor(abs(value) + Fraction(1, 2)) * (1 if value > 0 else -1)
    return whole if -(2**63) <= whole < 2**63 else None


def _case(letter: str, op: str) -> str:
    """The simple case mapping of Unicode, which maps a letter to one letter."""
    special = {("lower", "İ"): "i", ("upper", "ß"): "ẞ"}
    if (op, letter) in special:
        return special[op, letter]
    other = letter.lower() if op == "lower" else letter.upper()
    if len(other) == 1:
        return other
    title = letter.title()
    return title if len(title) == 1 else letter


def _trimmed(text: str, op: str, characters: str | None = None) -> str:
    def removed(letter: str) -> bool:
        return unicodedata.category(letter) == "Zs" if characters is None else letter in characters

    start, end = 0, len(text)
    while op != "rtrim" and start < end and removed(text[start]):
        start += 1
    while op != "ltrim" and end > start and removed(text[end - 1]):
        end -= 1
    return text[start:end]


def _substring(text: str, start: int, length: int | None = None) -> str:
    """The characters at the places that are asked for, one by one; no place is beyond 2^32."""
    start = max(-MOST, min(start, MOST))
    length = None if length is None else max(-MOST, min(length, MOST))
    first = start if start >= 0 else len(text) + start + 1
    places = range(1, len(text) + 1)
    if length is None:
        return "".join(text[at - 1] for at in places if at >= first)
    lo, hi = (first, first + length) if length >= 0 else (first + length, first)
    return "".join(text[at - 1] for at in places if lo <= at < hi)


def _like(text: str, pattern: str, escape: str = "") -> bool:
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if escape and head == escape:
        return text[:1] == rest[:1] and _like(text[1:], rest[1:], escape)
    if head == "%":
        return any(_like(text[at:], rest, escape) for at in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and _like(text[1:], rest, escape)


def _part(name: str, moment: datetime) -> int:
    iso = moment.isocalendar()
    seconds = moment.second * 1_000_000 + moment.microsecond
    return {
        "year": moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "week": iso.week,
        "isoyear": iso.year,
        "day": moment.day,
        "doy": moment.timetuple().tm_yday,
        "dow": moment.isoweekday() % 7,
        "isodow": moment.isoweekday(),
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "millisecond": seconds // 1_000,
        "microsecond": seconds,
    }[name]


def _start(unit: str, moment: datetime) -> int:
    units = (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    )
    at = units.index(unit)
    if at < units.index("millisecond"):
        moment = moment.replace(microsecond=0)
    elif unit == "millisecond":
        moment = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
    if at < units.index("second"):
        moment = moment.replace(second=0)
    if at < units.index("minute"):
        moment = moment.replace(minute=0)
    if at < units.index("hour"):
        moment = moment.replace(hour=0)
    if unit == "week":
        moment -= timedelta(days=moment.weekday())
    if at < units.index("week"):
        moment = moment.replace(day=1)
    if unit in ("quarter", "year"):
        moment = moment.replace(month=1 if unit == "year" else (moment.month - 1) // 3 * 3 + 1)
    return (moment - EPOCH) // timedelta(microseconds=1)

"""Functions of text, as DuckDB computes them over code points.

Text is an array of Python strings, so each value is a call of a method of `str`. The methods run in C, one
after the other for a whole column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.functions.entry import (
    COMPARISON,
    CONCATENATION,
    TEXT,
    WHOLE,
    Function,
    Kernel,
    Reference,
    Signature,
    Spelling,
    called,
    constant,
    once,
    written,
)
from tamis.expressions.functions.operands import Operand, any_null
from tamis.expressions.nodes import Call, Type
from tamis.expressions.vectors import Mask

# The characters that TRIM removes: those of the Unicode category Zs.
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LONGEST = 2**32 - 1  # characters of a text: as in DuckDB, SUBSTRING takes larger numbers for this one


class _SimpleCase(dict[int, str]):
    """The case mapping of each character to one character; Python's own maps some to several."""

    def __init__(self, convert: Callable[[str], str], others: dict[str, str]) -> None:
        super().__init__({ord(letter): single for letter, single in others.items()})
        self._convert = convert

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        found = self._convert(letter)
        if len(found) > 1:
            found = letter.title() if len(letter.title()) == 1 else letter
        self[code] = found
        return found


_LOWER = _SimpleCase(str.lower, {"\u0130": "i"})
_UPPER = _SimpleCase(str.upper, {"\u00df": "\u1e9e"})


def lower(text: str) -> str:
    """LOWER of one text.

    >>> lower("ΑΣ É")
    'ασ é'
    """
    return text.lower() if text.isascii() else text.translate(_LOWER)


def upper(text: str) -> str:
    """UPPER of one text: of each character, so that the length stays.

    >>> upper("straße")
    'STRAẞE'
    """
    return text.upper() if text.isascii() else text.translate(_UPPER)


def substring(text: str, start: int, length: int | None = None) -> str:
    """SUBSTRING of one text. The first character is 1, the last one is -1. A negative length takes the
    characters in front of the start.

    >>> substring("hello", 2, 3), substring("hello", -2), substring("hello", 3, -2)
    ('ell', 'lo', 'he')
    """
    start = _limited(start)
    length = None if length is None else _limited(length)
    first = start - 1 if start >= 0 else len(text) + start
    end = len(text) if length is None else first + length
    if length is not None and length < 0:
        first, end = end, first
    return text[max(0, first) : max(0, end)]


def _limited(place: int) -> int:
    return max(-_LONGEST, min(place, _LONGEST))


def _of_method(parts: list[list[str]]) -> Callable[[str], bool] | None:
    """The method of `str` that does the same as a pattern of few parts; None for other patterns."""
    plain = ["".join(letter[-1] for letter in part) for part in parts]
    if any("." in part for part in parts):  # a `_`; a point is escaped
        return None
    match plain:
        case [prefix, ""]:
            return methodcaller("startswith", prefix)
        case ["", suffix]:
            return methodcaller("endswith", suffix)
        case ["", inside, ""]:
            return methodcaller("__contains__", inside)
    return None


class Pattern:
    """A pattern of LIKE: `%` stands for any characters, `_` for one. `matches` says if a text is like it."""

    def __init__(self, pattern: str, escape: str = "") -> None:
        """Raises ValueError if the pattern ends with its escape character."""
        parts: list[list[str]] = [[]]
        letters = iter(pattern)
        for letter in letters:
            if escape and letter == escape:
                following = next(letters, None)
                if following is None:
                    raise ValueError("the pattern ends with its escape character")
                parts[-1].append(re.escape(following))
            elif letter == "%":
                parts.append([])
            else:
                parts[-1].append("." if letter == "_" else re.escape(letter))
        self._parts = [re.compile("".join(part), re.DOTALL) for part in parts]
        self._last = len(parts[-1])
        self.matches = _of_method(parts) or self._fits

    def _fits(self, text: str) -> bool:
        """True if the whole text is like the pattern. Each part between `%` has a fixed length, so that the
        first place where it fits is as good as any other.
        """
        first, *middle = self._parts
        if not middle:
            return first.fullmatch(text) is not None
        found = first.match(text)
        for part in middle[:-1]:
            if found is None:
                return False
            found = part.search(text, found.end())
        end = len(text) - self._last
        return found is not None and found.end() <= end and middle[-1].match(text, end) is not None


@lru_cache(maxsize=1_000)
def pattern_of(pattern: str, escape: str = "") -> Pattern:
    """The pattern of a LIKE, from a cache."""
    return Pattern(pattern, escape)


def texts(values: list[Any]) -> NDArray[Any]:
    """Texts as the data of an operand."""
    out = np.empty(len(values), np.object_)
    out[:] = values
    return out


def _rows(args: Sequence[Operand]) -> tuple[list[list[Any]], Mask | None]:
    """The values of each operand as lists of one length, and the rows in which one is NULL."""
    null: Mask | None = None
    for arg in args:
        null = any_null(null, arg.null)
    shape = np.broadcast_shapes(*(arg.data.shape for arg in args), () if null is None else null.shape)
    if null is not None:
        null = np.broadcast_to(null, shape)
    return [np.broadcast_to(arg.data, shape).tolist() for arg in args], null


def each(
    function: Callable[..., Any], args: Sequence[Operand], missing: Any = None
) -> tuple[list[Any], Mask | None]:
    """The results of a function for each row; `missing` where an operand is NULL."""
    columns, null = _rows(args)
    if null is None or not null.any():
        return list(map(function, *columns)), None
    skipped = null.tolist()
    return [
        missing if skip else function(*row)
        for skip, row in zip(skipped, zip(*columns, strict=True), strict=True)
    ], null


def _to_text(function: Callable[..., str]) -> Kernel:
    def run(args: Sequence[Operand], _: Type) -> Operand:
        values, null = each(function, args)
        return Operand(texts(values), null)

    return run


def _length(args: Sequence[Operand], _: Type) -> Operand:
    values, null = each(len, args, 0)
    return Operand(np.array(values, np.int64), null)


def _like(args: Sequence[Operand], _: Type) -> Operand:
    pattern = pattern_of(*(str(arg.data[0]) for arg in args[1:]))
    values, null = each(pattern.matches, args[:1], False)
    return Operand(np.array(values, np.bool_), null)


def _refused_pattern(node: Call) -> str | None:
    pattern, escape = (*(constant(node, i) for i in range(1, len(node.args))), "")[:2]
    if not isinstance(pattern, str) or not isinstance(escape, str) or len(escape.encode()) > 1:
        return "LIKE needs a constant pattern, and at most one character of ASCII after ESCAPE"
    rest = pattern.replace(escape * 2, "") if escape else ""
    if escape and rest.endswith(escape):
        return "the pattern of LIKE can't end with the character after ESCAPE"
    return None


def _like_in_duckdb(_: Call, args: Sequence[str]) -> str:
    escape = f" ESCAPE {args[2]}" if len(args) > 2 else ""
    return f"({args[0]} LIKE {args[1]}{escape})"


def _substring_in_duckdb(_: Call, args: Sequence[str]) -> str:
    """DuckDB's SUBSTRING takes no larger numbers than `_LONGEST`."""
    limits = f"CASE WHEN t > {_LONGEST} THEN {_LONGEST} WHEN t < -{_LONGEST} THEN -{_LONGEST} ELSE t END"
    return f"substring({', '.join((args[0], *(once(arg, limits) for arg in args[1:])))})"


_TRIMMED = Signature((TEXT, TEXT), Type.VARCHAR, optional=1)
_EACH_CHARACTER = "Each character becomes one character: `upper('ß')` is `ẞ`."
_JOINED = r"`\|\|` is NULL if one side is, `concat` skips NULLs. Other types are cast to text."
_WITHOUT_BLANKS = (
    "The text without blanks (Unicode category Zs) at both ends, or at one end. With a second argument,"
    " `trim(s, 'xy')`, the text without these characters at its ends."
)

ENTRIES = (
    Function(
        name="lower",
        types=Signature((TEXT,), Type.VARCHAR),
        kernel=_to_text(lower),
        duckdb=called("lower"),
        spelling=Spelling(("lower",), (1, 1)),
        reference=Reference("`lower(s)`", _EACH_CHARACTER, "ksqlDB `LCASE`, `UCASE`"),
        computed=True,
    ),
    Function(
        name="upper",
        types=Signature((TEXT,), Type.VARCHAR),
        kernel=_to_text(upper),
        duckdb=called("upper"),
        spelling=Spelling(("upper",), (1, 1)),
        reference=Reference("`upper(s)`", _EACH_CHARACTER),
        computed=True,
    ),
    Function(
        name="length",
        types=Signature((TEXT,), Type.BIGINT),
        kernel=_length,
        duckdb=called("length"),
        spelling=Spelling(("length", "char_length", "character_length"), (1, 1)),
        reference=Reference(
            "`length(s)`, `char_length(s)`, `character_length(s)`",
            "Code points.",
            "Flink SQL `CHAR_LENGTH`, ksqlDB `LEN`",
        ),
        computed=True,
        between=(0.0, 2.0**40),
    ),
    Function(
        name="||",
        types=Signature((TEXT, TEXT), Type.VARCHAR),
        kernel=_to_text(str.__add__),
        duckdb=written("({} || {})"),
        reference=Reference(r"`s \|\| t`", _JOINED, "in Flink SQL, one NULL makes `CONCAT` NULL"),
        binding=CONCATENATION,
        computed=True,
    ),
    Spelling(("concat",), (1, 100), reference=Reference("`concat(s, …)`", _JOINED)),
    Function(
        name="trim",
        types=_TRIMMED,
        kernel=_to_text(lambda text, characters=_SPACES: text.strip(characters)),
        duckdb=called("trim"),
        spelling=Spelling(("trim",), (1, 2)),
        reference=Reference(
            r"`trim(s)`, `TRIM([BOTH \| LEADING \| TRAILING] ['xy'] FROM s)`", _WITHOUT_BLANKS
        ),
        computed=True,
    ),
    Function(
        name="ltrim",
        types=_TRIMMED,
        kernel=_to_text(lambda text, characters=_SPACES: text.lstrip(characters)),
        duckdb=called("ltrim"),
        spelling=Spelling(("ltrim",), (1, 2)),
        reference=Reference("`ltrim(s)`", _WITHOUT_BLANKS),
        computed=True,
    ),
    Function(
        name="rtrim",
        types=_TRIMMED,
        kernel=_to_text(lambda text, characters=_SPACES: text.rstrip(characters)),
        duckdb=called("rtrim"),
        spelling=Spelling(("rtrim",), (1, 2)),
        reference=Reference("`rtrim(s)`", _WITHOUT_BLANKS),
        computed=True,
    ),
    Function(
        name="substring",
        types=Signature((TEXT, WHOLE, WHOLE), Type.VARCHAR, optional=1),
        kernel=_to_text(substring),
        duckdb=_substring_in_duckdb,
        spelling=Spelling(("substring", "substr"), (2, 3), "{name}(text, start, length)"),
        reference=Reference(
            "`substring(s, start, length)`, `substr`, `SUBSTRING(s FROM start FOR length)`",
            "The first character is 1, the last one -1. The length may be missing; a negative length takes"
            " the characters before the start.",
        ),
        computed=True,
    ),
    Function(
        name="like",
        types=Signature((TEXT, TEXT, TEXT), Type.BOOLEAN, optional=1),
        kernel=_like,
        duckdb=_like_in_duckdb,
        reference=Reference(
            "`s [NOT] LIKE 'a%_'`, `ILIKE`",
            "`%` stands for any characters, `_` for one. The pattern is a constant. There is no escape"
            " character unless `ESCAPE '!'` gives one.",
            r"RisingWave has `\\` by default; no `ILIKE` in Flink SQL and ksqlDB",
        ),
        refused=_refused_pattern,
        binding=COMPARISON,
        computed=True,
    ),
)

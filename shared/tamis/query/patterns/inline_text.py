"""The statement of a pattern with its values, which means the same on every machine and later."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.query.watches import MAX_GAP, NamedPattern

# Plans, requests and the texts of standing queries contain it, each with a limit of about a million.
MOST_CHARACTERS = 900_000


def inline_text(name: str, members: Sequence[NamedPattern]) -> str:
    """CREATE PATTERN … VALUES for one pattern with that name, or for the members `name/…` of a folder.

    >>> inline_text("peak", [NamedPattern("peak", (0.0, 2.5, 0.0))])
    'CREATE PATTERN peak VALUES (0, 2.5, 0)'
    >>> inline_text("days", [NamedPattern("days/monday", (0.0, 1.0), max_gap=3_000_000)])
    "CREATE PATTERN days VALUES ('monday', (0, 1)) WITH (max_gap = '3 s')"
    """
    if [one.name for one in members] == [name]:
        values = _values(members[0])
    else:
        prefix = f"{name}/"
        values = ", ".join(
            f"({string_text(one.name.removeprefix(prefix))}, {_values(one)})" for one in members
        )
    max_gap = members[0].max_gap
    options = "" if max_gap == MAX_GAP else f" WITH (max_gap = '{_duration(max_gap)}')"
    return f"CREATE PATTERN {name} VALUES {values}{options}"


def _values(pattern: NamedPattern) -> str:
    return f"({', '.join(map(number_text, pattern.values))})"


def _duration(microseconds: int) -> str:
    units = (("s", 1_000_000), ("ms", 1_000), ("us", 1))
    unit, length = next((unit, length) for unit, length in units if microseconds % length == 0)
    return f"{microseconds // length} {unit}"


def number_text(value: float) -> str:
    """The shortest text that is read as this double.

    >>> number_text(2.0), number_text(0.1), number_text(-0.0), number_text(1e300)
    ('2', '0.1', '-0.0', '1e+300')
    """
    whole = value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0"
    return str(int(value)) if whole else repr(value)


def string_text(text: str) -> str:
    """A text as SQL's literal."""
    return "'" + text.replace("'", "''") + "'"

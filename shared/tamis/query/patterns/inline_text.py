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
    "CREATE PATTERN days VALUES ('monday', (0, 1)) WITH (max_gap = '3000000 us')"
    """
    if [one.name for one in members] == [name]:
        values = _values(members[0])
    else:
        prefix = f"{name}/"
        values = ", ".join(f"({_string(one.name.removeprefix(prefix))}, {_values(one)})" for one in members)
    max_gap = members[0].max_gap
    options = "" if max_gap == MAX_GAP else f" WITH (max_gap = '{max_gap} us')"
    return f"CREATE PATTERN {name} VALUES {values}{options}"


def _values(pattern: NamedPattern) -> str:
    return f"({', '.join(map(_number, pattern.values))})"


def _number(value: float) -> str:
    """The shortest text that is read as this double."""
    return (
        str(int(value)) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else repr(value)
    )


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

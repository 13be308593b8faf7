"""Suggestions for unknown names, numbers of things, and names typed outside SQL."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from difflib import get_close_matches

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_MOST_LISTED = 40  # all functions


def normalized_name(name: str, known: Container[str]) -> str:
    """The name that a command line or an address means, as in SQL: folded to lower case unless in double
    quotes. A name in `known` needs no quotes, because shells and addresses would need them quoted again.

    >>> normalized_name("Air", {"air"}), normalized_name('"Air"', {"air"}), normalized_name("Air", {"Air"})
    ('air', 'Air', 'Air')
    """
    if len(name) > 2 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name if name in known else name.lower()


def suggest(name: str, known: Iterable[str], otherwise: str | None = None, *, quoted: bool = False) -> str:
    """A hint for an unknown name: the closest known name, else `otherwise`, else all known names. `quoted`:
    the name is written in SQL, where some names need double quotes.

    >>> suggest("tmep", ["temp", "rh"])
    "did you mean 'temp'?"
    >>> suggest("x", ["temp", "rh"])
    'known names: rh, temp'
    >>> suggest("temp", ["Temp", "rh"], quoted=True)
    'write "Temp" with its double quotes: names without quotes are folded to lower case'
    """
    names = sorted(set(known))
    folded = {known.lower(): known for known in names}
    close = get_close_matches(name.lower(), folded, n=1)
    if close:
        found = folded[close[0]]
        if not quoted or _PLAIN.fullmatch(found):
            return f"did you mean '{found}'?"
        why = "names without quotes are folded to lower case"
        if not _PLAIN.fullmatch(found.lower()):
            why = "only letters, digits and _ need no quotes"
        shown = found.replace('"', '""')
        return f'write "{shown}" with its double quotes: {why}'
    if otherwise is not None:
        return otherwise
    return f"known names: {listed(names)}" if names else "none is defined yet"


def listed(names: Sequence[str]) -> str:
    """The first names, and the number of the others: a text with many mistakes has such a list in each.

    >>> listed(["rh", "temp"])
    'rh, temp'
    >>> listed([f"c{n}" for n in range(42)]).split("c36, ")[1]
    'c37, c38, c39 and 2 others'
    """
    more = len(names) - _MOST_LISTED
    others = f" and {counted(more, 'other')}" if more > 0 else ""
    return ", ".join(names[:_MOST_LISTED]) + others


def counted(number: int, noun: str) -> str:
    """A number of things in words; the plural of `noun` has an s.

    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

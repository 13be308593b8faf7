"""Suggestions for unknown names, numbers of things, and names typed outside SQL."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from difflib import get_close_matches

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


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
    return f"known names: {', '.join(names)}" if names else "none is defined yet"


def counted(number: int, noun: str) -> str:
    """A number of things in words; the plural of `noun` has an s.

    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

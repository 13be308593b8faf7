"""Names of streams and queries where they are typed outside SQL: on the command line, in addresses."""

from __future__ import annotations

from collections.abc import Container


def meant(name: str, known: Container[str]) -> str:
    """The name that one stands for, as in SQL: folded to lower case unless in double quotes. One of `known`
    needs no quotes, as shells and addresses would have them quoted again.

    >>> meant("Air", {"air"}), meant('"Air"', {"air"}), meant("Air", {"air", "Air"})
    ('air', 'Air', 'Air')
    """
    if len(name) > 2 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name if name in known else name.lower()

"""The result of one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MOST = 5  # reasons that one finding names

State = Literal["ok", "warning", "failed", "unchecked"]


@dataclass(frozen=True)
class Finding:
    """A state with what was found, and what to do about it. A check is `unchecked` if something that it needs
    isn't there.
    """

    state: State
    found: str
    todo: str = ""


def listed(reasons: Sequence[str]) -> str:
    """The first reasons, and the number of the others.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e", "f"])
    ('a; b', 'a; b; c; d; e; and 1 more')
    """
    more = [f"and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    return "; ".join([*reasons[:MOST], *more])

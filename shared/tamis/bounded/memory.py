"""The verdict on the memory of a query of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tamis.declarations.streams import StreamDef

EMPTY = "contradiction: nothing can join"


@dataclass(frozen=True)
class Memory:
    """The verdict on a query's memory, with the fields that `tamis explain --json` prints."""

    verdict: Literal["bounded", "unbounded", "unknown"]
    bound: int | None
    formula: str
    theorem: str
    reason: str
    repairs: tuple[str, ...] = ()
    witness: str | None = None


def sentences(*parts: str) -> str:
    """Several reasons as one text, without a full stop at the end.

    >>> sentences("nothing bounds a.x", "a tuple of b may come later")
    'nothing bounds a.x. A tuple of b may come later'
    """
    first, *others = parts
    return ". ".join([first, *(one[:1].upper() + one[1:] for one in others)])


def not_proven(why: str, doubts: Sequence[str]) -> str:
    """Text of a failing condition with the reasons why this doesn't prove the query unbounded."""
    first, *others = doubts
    besides = [f"besides, {one}" for one in others]
    return sentences(f"not proven: {why}", f"no proof was found, since {first}", *besides)


def no_number(missing: Iterable[str]) -> str:
    """The reason why a bound has a formula and no number."""
    return f"the memory is bounded by time, but has no number: {', and '.join(missing)}"


def undeclared(stream: StreamDef) -> str | None:
    """The options of a stream without which a bound has no number; None if all are declared."""
    declared = {"keys": stream.keys if stream.key else 1, "rate": stream.rate}
    missing = [name for name, value in declared.items() if value is None]
    found = []
    if missing:
        verb = "declares neither" if len(missing) > 1 else "doesn't declare"
        found.append(f"stream {stream.name} {verb} {' nor '.join(missing)}")
    if stream.max_ahead is None:
        found.append(f"max_ahead of stream {stream.name} is 'unlimited'")
    return ", and ".join(found) or None

"""Spans of time as text for people."""

from __future__ import annotations


def seconds(microseconds: int) -> str:
    """A span in seconds, exactly.

    >>> seconds(90_000_000), seconds(9_999_998)
    ('90 s', '9.999998 s')
    """
    whole, rest = divmod(microseconds, 1_000_000)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".") + " s"

"""Sample outputs of docs/cli.md, for comparison with what commands print."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def samples() -> list[str]:
    """The sample outputs in the order of the page."""
    return re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def sample(beginning: str) -> str:
    """The only sample output that begins so."""
    (found,) = [one for one in samples() if one.startswith(beginning)]
    return found


def masked(text: str) -> list[str]:
    """The lines of an output without its numbers and the widths of its columns.

    >>> masked("SINK   SINCE\\npager  2026-03-01T08:28:20Z  for 100 s at 10.0.0.7:1883")
    ['SINK  SINCE', 'pager  0-0-0T0:0:0Z  for 0 s at 0:0']
    """
    lines = (re.sub(r"\d+(?:\.\d+)*", "0", line) for line in text.splitlines())
    return [re.sub(r" {2,}", "  ", line).rstrip() for line in lines]

"""`python -m tests.unit.repository.pipeline_page` writes the rules of omission into the pipeline's page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tamis.planning.omission_rules import RULES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pipeline.md"
_BEGIN, _END = "<!-- rules -->\n", "<!-- end of rules -->"
_HEAD = "\n| rule | reason against omission |\n|---|---|\n"


def filled(page: str) -> str:
    """The page with the rules that run."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + _HEAD + "".join(map(_row, RULES)) + "\n" + _END + after


def _row(rule: Callable[..., object]) -> str:
    told = " ".join((rule.__doc__ or "").split())
    return f"| `{rule.__name__}` | {told} |\n"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))

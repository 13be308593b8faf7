"""The examples of docs/python.md run, and print what the page says; its table has all public names."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

import tamis

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "python.md").read_text()


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(REPOSITORY)
    matplotlib.use("Agg")
    names: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(code, names)
    pyplot.close("all")
    printed = capsys.readouterr().out
    for shown in re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S):
        assert shown in printed


def test_the_table_has_all_names() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(tamis.__all__)

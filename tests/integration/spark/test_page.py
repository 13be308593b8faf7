"""The examples of docs/spark.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "spark.md").read_text()


def test_the_examples_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    names: dict[str, object] = {"spark": spark}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(code, names)
    printed = capsys.readouterr().out
    for shown in re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S):
        assert shown in printed

"""The page of the pipeline has the rules that run, every kind of query, and every node.

A clause passes through the functions that the page names.
"""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import get_args

import pandas as pd
from tests.unit.repository.pipeline_page import PAGE, filled

import tamis
from tamis.operators.build import operator
from tamis.plan.nodes import Node, Sessions
from tamis.planning.build import first_plan
from tamis.query.model import Query
from tamis.query.parse import catalog_of


def test_the_page_has_the_rules_that_run_in_their_order() -> None:
    assert PAGE.read_text() == filled(PAGE.read_text()), "python -m tests.unit.repository.pipeline_page"


def test_the_page_has_every_kind_of_query_and_every_node() -> None:
    page = PAGE.read_text()
    for kind in (*get_args(Query), *get_args(Node)):
        assert f"`{kind.__name__}`" in page


SESSIONS = """
CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 9, rate = '1/1s');
CREATE ALERT q AS SELECT k, max(x) AS most
  FROM SESSION(s PARTITION BY k, ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR) GROUP BY k, window_start
  HAVING max(x) > 3;
"""


def test_having_of_a_session_passes_through_the_functions_that_the_page_names() -> None:
    section = PAGE.read_text().partition("## One clause on its way")[2].partition("\n## ")[0]
    named = re.findall(r"\]\(\.\./([^)]*\.py)\), `(\w+)`", section)
    assert len(named) == 8
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_name))

    readings = pd.DataFrame(
        {"k": ["a", "a"], "ts": pd.to_datetime(["2026-01-01 00:00", "2026-01-01 00:10"]), "x": [5.0, 1.0]}
    )
    sys.setprofile(note)
    try:
        (query,) = first_plan(catalog_of(SESSIONS)).standing
        operator(query.node).dump()
        same = tamis.verify(SESSIONS, {"s": readings}).same
    finally:
        sys.setprofile(None)
    assert same
    assert isinstance(query.node, Sessions)
    assert query.node.grouping.having is not None
    root = PAGE.parents[1]
    assert [one for one in named if (str(root / one[0]), one[1]) not in called] == []


def test_every_function_that_the_page_names_is_in_its_file() -> None:
    for path, name in re.findall(r"\]\(\.\./([^)]*\.py)\), `(\w+)`", PAGE.read_text()):
        assert re.search(rf"(def|class) {name}\b", (PAGE.parents[1] / path).read_text()), (path, name)

"""The pages on cuts: their example, their explanation and their rules are those of the code."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.nodes import Column, Type
from tamis.operators.windows.cut_policy import FULL_EVERY, MOST_ROWS
from tamis.operators.windows.pane_documents import from_document
from tamis.plan.nodes import Grouping
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text
from tamis.query.parse import catalog_of
from tamis.sharing.topic_assignment import MOST_PARTIAL

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "cuts.md").read_text()


def test_the_example_of_a_record_can_be_read() -> None:
    page = (DOCS / "topics.md").read_text()
    section = page[page.index("## Records of cuts") :]
    found = re.search(r"```json\n(.*?)```", section, re.S)
    assert found is not None
    document = orjson.loads(found[1])
    temp = Column("", "temp", Type.DOUBLE)
    asked = tuple(Aggregate(name, temp, False, Type.DOUBLE) for name in ("avg", "max"))
    grouping = Grouping((Column("", "station", Type.VARCHAR),), asked, ())
    rows = from_document({name: document[name] for name in ("panes", "groups", "counts", "tables")}, grouping)
    assert rows.counts.tolist() == document["counts"]
    assert rows.panes.tolist()[2] == 1_700_000_060_000_000
    # Every field of the example is in the list below it, and nothing else.
    listed = set(re.findall(r"`_\.(\w+)`", section)) - {"full"}
    assert listed == {*document["_"]} - {"shard"}


def test_the_example_of_an_explanation_is_that_of_the_code() -> None:
    catalog = catalog_of(
        "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE,"
        " WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (keys = 100, rate = '10/s');"
        "CREATE ALERT q AS SELECT window_end, k, max(v) AS most FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)"
        " GROUP BY window_end, k;"
    )
    (block,) = re.findall(r"```\n(  air: .*?)```", PAGE, re.S)
    assert block in text(explain(catalog, "q"))


def test_the_numbers_of_the_policy_are_those_of_the_code() -> None:
    assert f"has waited for {FULL_EVERY // 60_000_000} minutes" in PAGE
    assert f"there are {MOST_ROWS:,} rows" in PAGE
    assert f"at most {MOST_PARTIAL} topics of partial aggregates" in PAGE


@pytest.mark.skipif(find_spec("tests.model.cuts") is None, reason="the model is not here")
def test_the_rules_are_named_as_in_the_model() -> None:
    known = {*import_module("tests.model.cuts.rules").RULES}
    named = set(re.findall(r"\(`([\w`, ]+)`\)", PAGE[PAGE.index("## Rules for edges") :]))
    rules = {name for group in named for name in group.split("`, `")}
    assert rules <= known, rules - known

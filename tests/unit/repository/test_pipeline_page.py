"""The page of the pipeline lists the rules that run, and names every kind of query and every node."""

from __future__ import annotations

from typing import get_args

from tests.unit.repository.pipeline_page import PAGE, filled

from tamis.plan.nodes import Node
from tamis.query.model import Query


def test_the_page_has_the_rules_that_run_in_their_order() -> None:
    assert PAGE.read_text() == filled(PAGE.read_text()), "python -m tests.unit.repository.pipeline_page"


def test_the_page_has_every_kind_of_query_and_every_node() -> None:
    page = PAGE.read_text()
    for kind in (*get_args(Query), *get_args(Node)):
        assert f"`{kind.__name__}`" in page

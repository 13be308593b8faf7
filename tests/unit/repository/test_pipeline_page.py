"""The page of the pipeline lists the rules that run, and names every node and folder of operators."""

from __future__ import annotations

from typing import get_args

from tests.unit.repository.pipeline_page import PAGE, filled

from tamis.plan.nodes import Node


def test_the_page_has_the_rules_that_run_in_their_order() -> None:
    assert PAGE.read_text() == filled(PAGE.read_text()), "python -m tests.unit.repository.pipeline_page"


def test_the_page_has_every_node() -> None:
    page = PAGE.read_text()
    assert [node.__name__ for node in get_args(Node) if f"`{node.__name__}`" not in page] == []

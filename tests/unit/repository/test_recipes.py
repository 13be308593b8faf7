"""The recipes of CONTRIBUTING.md for an operator, a source and a sink: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tamis.operators import build
from tamis.plan.nodes import Node
from tamis.planning.plan_trees import query_plans
from tamis_alerts.sink_settings import HttpSink, Sink
from tamis_alerts.sinks import delivery
from tamis_edge.settings import AnySource
from tamis_edge.sources import opening

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()


def recipe(what: str) -> str:
    """One recipe, from its bold words to the next."""
    (found,) = re.findall(rf"\*\*… {what}\.\*\*(.*?)\n\n\*\*…", GUIDE, re.DOTALL)
    return str(found)


def kinds(union: object) -> list[type]:
    """The members of a union, without what annotates it."""
    first, *_ = get_args(union)
    return list(get_args(first) or get_args(union))


@pytest.mark.parametrize("what", ["an operator", "a source", "a sink"])
def test_every_file_of_a_recipe_is_there(what: str) -> None:
    named = re.findall(r"`((?:shared|services|tests|docs)/[^`]*)`", recipe(what))
    assert len(named) > 3
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_operator_was_added_by_the_recipe() -> None:
    made, page = Path(build.__file__).read_text(), (ROOT / "docs/pipeline.md").read_text()
    shown = Path(query_plans.__file__).read_text()
    for node in get_args(Node):
        assert f"case nodes.{node.__name__}()" in made
        assert f"case nodes.{node.__name__}()" in shown
        assert f"`{node.__name__}`" in page


@pytest.mark.parametrize(
    ("union", "module", "page"),
    [(AnySource, opening, "docs/connect.md"), (Sink, delivery, "docs/notify.md")],
    ids=["sources", "sinks"],
)
def test_every_source_and_sink_was_added_by_the_recipe(union: object, module: object, page: str) -> None:
    code, told = Path(str(getattr(module, "__file__", ""))).read_text(), (ROOT / page).read_text()
    for kind in kinds(union):
        (name,) = get_args(kind.model_fields["kind"].annotation)  # type: ignore[attr-defined]
        assert kind.__name__ in code or issubclass(kind, get_args(HttpSink))  # these have one transport
        assert f"kind: {name}" in told, name

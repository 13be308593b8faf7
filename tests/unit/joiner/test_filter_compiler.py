"""Compiled filters of topics: taken over from plan to plan, also by two threads at a time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tamis.expressions.nodes import Type
from tamis.operators.time_join.filter_dispatch import Dispatch
from tamis_joiner.core import compiled_plan
from tamis_joiner.core.compiled_plan import FilterCompiler


def test_two_threads_get_the_topics_that_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread is stopped within its work until the second one is done."""
    reached, second_done = threading.Event(), threading.Event()

    class Waiting(Dispatch):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            if threading.current_thread().name == "first":
                reached.set()
                second_done.wait(10)

    monkeypatch.setattr(compiled_plan, "Dispatch", Waiting)
    compiler = FilterCompiler()
    found: dict[str, set[str]] = {}

    def compile_topics(names: str) -> None:
        schemas = {name: {"v": Type.DOUBLE} for name in names}
        found[threading.current_thread().name] = set(compiler.compile(schemas, {}))

    first = threading.Thread(target=compile_topics, args=("ab",), name="first")
    first.start()
    reached.wait(10)
    second = threading.Thread(target=compile_topics, args=("cd",), name="second")
    second.start()
    second.join()
    second_done.set()
    first.join()
    assert found == {"first": {"a", "b"}, "second": {"c", "d"}}

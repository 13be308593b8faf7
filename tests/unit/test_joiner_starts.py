"""A query that ends: begun again where a Python worker was too slow for Spark, else the end of the joiner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis_joiner.service import SLOW_WORKER, STARTS, Joiner
from tamis_joiner.settings import JoinerSettings

SLOW = f"Job aborted: {SLOW_WORKER}.\n=== Streaming Query ==="


class Query:
    """A query as the joiner sees it, that ended by an error or, without one, is told to stop at once."""

    status: dict[str, bool] = {"isTriggerActive": False}  # noqa: RUF012

    def __init__(self, joiner: Joiner, error: str | None) -> None:
        self.isActive, self._error = error is None, error
        if error is None:
            joiner.stop()

    def exception(self) -> str | None:
        return self._error

    def stop(self) -> None:
        self.isActive = False


def served(*errors: str | None) -> int:
    """How many queries a joiner starts that end so, one after the other."""
    joiner = Joiner(ServiceSettings(), KafkaSettings(), JoinerSettings(), TableSettings())
    started: list[Query] = []
    ends: Iterator[str | None] = iter(errors)

    def start() -> Any:
        started.append(Query(joiner, next(ends)))
        return started[-1]

    joiner.serve(cast(Any, start))
    return len(started)


def test_slow_workers_are_waited_for() -> None:
    assert served(None) == 1
    assert served(*[SLOW] * (STARTS - 1), None) == STARTS


@pytest.mark.parametrize("errors", [["no such topic"], [SLOW, "no such topic"], [SLOW] * STARTS])
def test_other_ends_and_too_many_are_told(errors: list[str]) -> None:
    with pytest.raises(UnavailableError, match=r"the query ended: .*; the checkpoint is whole: start the"):
        served(*errors)

"""Changes of streams and functions that another process has read mean the same as if they were read here."""

from __future__ import annotations

import pytest
from tests.unit.registry.test_proving import ALERTS, STREAMS, prover, started

from tamis_registry.proving.prover import Prover

__all__ = ["prover"]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER STREAM air ADD COLUMN y DOUBLE;",
        "ALTER STREAM air ALTER COLUMN x SET CHECK (x < 120); ALTER STREAM air ADD COLUMN y DOUBLE;",
        "ALTER STREAM surface SET (keys = 5); ALTER STREAM air SET (keys = 7, rate = '1/s');",
        "CREATE OR REPLACE FUNCTION double(v DOUBLE) RETURNS DOUBLE AS 3 * v;",
    ],
)
def test_a_change_means_the_same_if_another_process_has_read_it(prover: Prover, text: str) -> None:
    """Every alert had a new definition, and windows began anew, when a stream got a column."""
    one, other = started(STREAMS + ALERTS), started(STREAMS + ALERTS)
    by = other.state.catalog
    mine, wanted = one.apply(text, 2)
    theirs, change = other.apply_read(prover.ask(text, by, None, keep=False), by, 2)
    assert [outcome.replanned for outcome in theirs] == [outcome.replanned for outcome in mine]
    assert change.statements == wanted.statements
    assert change.written is not None and wanted.written is not None
    assert change.written.json == wanted.written.json


def test_nothing_is_proved_again_after_a_change(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = started(STREAMS + ALERTS)
    by = registry.state.catalog
    found = prover.ask("ALTER STREAM air SET (keys = 7);", by, None, keep=False)

    def prove(*_: object, **__: object) -> None:
        raise AssertionError("proved again")

    for name in ("join_verdict._judge", "decide._decide"):
        monkeypatch.setattr(f"tamis.planning.{name}", prove)
    (outcome,), _ = registry.apply_read(found, by, 2)
    assert {one.verdict.name: one.result for one in outcome.replanned} == {
        "hot": "kept",
        "pair": "kept",
        "alone": "kept",
        "mean": "replaced",
    }

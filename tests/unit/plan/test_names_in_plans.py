"""Names that no service could read from a plan are refused: such a plan stopped all changes of the fleet."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import TWO

from tamis.errors import SqlErrors
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.planning.build import build_plan
from tamis.query.parse import catalog_of


def labels(number: int) -> str:
    return ", ".join(f"n{i}=x" for i in range(number))


def nested(levels: int, length: int) -> str:
    """Derived streams that join, each reading the one before under a name of so many characters."""
    near = "s.k = c.k AND s.ts = c.ts"
    made = ["CREATE STREAM j0 AS SELECT s.k, s.ts, s.x FROM a AS s JOIN c ON " + near]
    for n in range(1, levels):
        long = chr(ord("a") + n) * length
        on = near.replace("s.", f"{long}.")
        columns = f"{long}.k, {long}.ts, {long}.x"
        made.append(f"CREATE STREAM j{n} AS SELECT {columns} FROM j{n - 1} AS {long} JOIN c ON {on}")
    return "; ".join([*made, f"CREATE ALERT q AS SELECT x FROM j{levels - 1} WHERE x > 1"])


@pytest.mark.parametrize(
    ("taken", "refused", "what"),
    [
        (
            f"CREATE ALERT q AS SELECT x AS {'n' * 100} FROM a WHERE x > 1",
            f"CREATE ALERT q AS SELECT x AS {'n' * 1_001} FROM a WHERE x > 1",
            "the name of a column can have at most 100 characters",
        ),
        (
            f"CREATE ALERT q AS SELECT x FROM a AS {'n' * 100} WHERE x > 1",
            f"CREATE ALERT q AS SELECT x FROM a AS {'n' * 1_001} WHERE x > 1",
            "the name of a stream in FROM can have at most 100 characters",
        ),
        (nested(6, 100), nested(14, 100), "this name exceeds 1000 characters"),
        (
            f"CREATE ALERT q WITH (labels = '{labels(1_000)}') AS SELECT x FROM a WHERE x > 1",
            f"CREATE ALERT q WITH (labels = '{labels(50_001)}') AS SELECT x FROM a WHERE x > 1",
            "the value has 50001 labels",
        ),
    ],
)
def test_what_is_taken_can_be_read_from_a_plan(taken: str, refused: str, what: str) -> None:
    catalog = catalog_of(TWO, taken)
    plan = build_plan(
        1, catalog, partitions=1, versions={}, topic_numbers={}, since={}, shard_streams={}
    ).plan
    assert decode_plan(encode_plan(plan)) == plan
    with pytest.raises(SqlErrors, match=what):
        catalog_of(TWO, refused)

"""Tuples that come too late for a standing query are counted once, over restarts and repetitions."""

from __future__ import annotations

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState
from tests.stream_records import progress_record

from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

SECOND = 1_000_000
SQL = """
CREATE STREAM a (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (rate = '1/s');
CREATE STREAM b (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (rate = '1/s');
CREATE ALERT wide WITH (edge = 'raw') AS
  SELECT window_end, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '10' SECOND)
  WHERE k > 0 GROUP BY window_end;
CREATE ALERT pairs AS SELECT DISTINCT a.k FROM a, b WHERE a.k = b.k AND a.k BETWEEN 0 AND 9 AND b.ts > a.ts;
CREATE ALERT near AS SELECT a.k FROM a, b WHERE a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '9' SECOND;
"""


class Joiner:
    """Its only partition, begun anew for each batch."""

    def __init__(self) -> None:
        self.state = DictState()
        self.batches = 0
        plan = first_plan(catalog_of(SQL), shards={"e/a": "a", "e/b": "b"})
        topics = {query.alert: [source.topic for source in query.inputs] for query in plan.standing}
        self.a, self.b = topics["pairs"]
        assert topics["wide"] == [self.a]
        self.missed = self.take({PLANS: [encode_plan(plan)]})

    def take(self, values: dict[str, list[bytes]]) -> dict[str, int]:
        """What it says of tuples that came too late."""
        for taken in (values, {}):  # what it says is written behind its alarms
            self.batches += 1
            records = [Records(t, 0, v, np.arange(len(v)), np.arange(len(v))) for t, v in taken.items()]
            group = Group.load(0, 1, self.state)
            out = group.process(*split_plans(records), self.state, now=self.batches, token=f"{self.batches}")
            assert not out.dead_letters
            if out.frontier is not None:
                frontier = Frontier.from_bytes(out.frontier)
                assert not frontier.unable
        return frontier.missed


def tuples(shard: str, *placed: tuple[int, int, int]) -> list[bytes]:
    """Tuples of k, seconds and place."""
    return [
        orjson.dumps(
            {"k": k, "ts": ts * SECOND, "_": {"shard": shard, "plan": 1, "activation": 0, "place": place}}
        )
        for k, ts, place in placed
    ]


def progress(shard: str, seconds: int) -> list[bytes]:
    return [progress_record(shard, 1, 0, seconds * SECOND)]


def test_each_is_counted_once_for_each_query_that_misses_it() -> None:
    joiner = Joiner()
    assert joiner.missed == {}
    assert (
        joiner.take({joiner.a: tuples("e/a", (1, 5, 1), (2, 25, 2)), joiner.b: tuples("e/b", (1, 9, 1))})
        == {}
    )
    # The first window has ended, and stream b hasn't come as far: what joins them takes the tuple still.
    joiner.take({joiner.a: progress("e/a", 12), joiner.b: progress("e/b", 3)})
    late = tuples("e/a", (3, 7, 3), (0, 7, 4), (3, 12, 5))
    assert joiner.take({joiner.a: late}) == {"wide": 1}
    assert joiner.take({joiner.a: late}) == {"wide": 1}
    # Now both have passed 10 seconds: one tuple is too late for both, one for one of them.
    joiner.take({joiner.a: progress("e/a", 24), joiner.b: progress("e/b", 14)})
    assert joiner.take({joiner.a: tuples("e/a", (4, 13, 6), (4, 15, 7), (4, 24, 8))}) == {
        "wide": 3,
        "pairs": 1,
    }
    assert joiner.take({joiner.b: tuples("e/b", (4, 2, 2))}) == {"wide": 3, "pairs": 2}

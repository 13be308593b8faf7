"""A standing query that can't be evaluated for a while continues where it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from tests.fixtures.dict_state import DictState

from tamis.errors import InputError
from tamis.messaging import topics
from tamis.messaging.records import Frontier
from tamis.operators.build import operator
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core import running_query
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

SQL = "CREATE STREAM a (k INT); CREATE ALERT ks AS SELECT k FROM a;"


class Partition:
    """An output partition whose process is started again for each batch."""

    def __init__(self) -> None:
        self.plan = replace(first_plan(catalog_of(SQL), shards={"e/a": "a"}), partitions=1)
        self.state = DictState()
        self.batch = 0

    def __call__(self, *positions: int, plan: Plan | None = None) -> tuple[list[int], Frontier]:
        """The numbers of the rows that tuples at these positions make, and the frontier record."""
        (source,) = self.plan.standing[0].inputs
        values = [
            orjson.dumps({"k": at, "_": {"shard": "e/a", "plan": 1, "activation": 0, "place": at}})
            for at in positions
        ]
        numbers, report = [], None
        for plans, tuples in ([encode_plan(plan)] if plan else [], values), ([], []):
            self.batch += 1
            records = [
                Records(topic, 0, log, np.arange(len(log)), np.zeros(len(log), np.int64))
                for topic, log in ((topics.PLANS, plans), (source.topic, tuples))
            ]
            group = Group.load(0, 1, self.state)
            out = group.process(*split_plans(records), self.state, now=self.batch, token=f"{self.batch}")
            numbers += [orjson.loads(value)["number"] for _, value in out.alarms]
            report = out.frontier or report
        assert report is not None
        return numbers, Frontier.from_bytes(report)


def refuse(*_: Any) -> Any:
    raise InputError("the file of a table is missing")


@pytest.mark.parametrize("new_plan", [False, True])
def test_rows_are_numbered_on_after_an_error(monkeypatch: pytest.MonkeyPatch, new_plan: bool) -> None:
    """Rows with numbers that were given before have ids that were seen before: readers would drop them."""
    send = Partition()
    assert send(1, 2, plan=send.plan)[0] == [0, 1]
    with monkeypatch.context() as patched:
        patched.setattr(running_query, "operator", refuse)
        numbers, report = send(3)
        assert numbers == []
        assert report.unable == {"ks": "the file of a table is missing"}
    numbers, report = send(2, 4, plan=replace(send.plan, version=2) if new_plan else None)
    assert numbers == [2]
    assert report.unable == {}


def test_an_error_while_the_file_of_a_table_has_changed_stops_its_query_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The joiner ended, since a query that is restored reads its tables again."""
    sql = SQL + "CREATE ALERT others AS SELECT k FROM a WHERE k > 0;"
    send = Partition()
    send.plan = replace(first_plan(catalog_of(sql), shards={"e/a": "a"}), partitions=1)
    assert sorted(send(1, 2, plan=send.plan)[0]) == [0, 0, 1, 1]
    take = running_query.RunningQuery.take

    made = operator
    (ks,) = (query.node for query in send.plan.standing if query.alert == "ks")

    def fail(running: running_query.RunningQuery, *given: Any) -> Any:
        if running.query.node != ks:
            return take(running, *given)
        patched.setattr(running_query, "operator", lambda node, _: (refuse if node == ks else made)(node))
        raise InputError("a function has failed")

    with monkeypatch.context() as patched:
        patched.setattr(running_query.RunningQuery, "take", fail)
        numbers, report = send(3)
        assert numbers == [2]
        assert report.unable == {"ks": "the file of a table is missing"}
    numbers, report = send(4)
    assert sorted(numbers) == [2, 3]
    assert report.unable == {}


def test_a_dropped_query_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Partition()
    send(1, 2, plan=send.plan)
    with monkeypatch.context() as patched:
        patched.setattr(running_query, "operator", refuse)
        send(plan=replace(send.plan, version=2, standing=()))
    assert orjson.loads(send.state.blobs["meta"])["standing"] == {}
    assert not [name for name in send.state.blobs if name.startswith("standing/")]


def test_a_state_of_an_earlier_version_stops_its_query_alone() -> None:
    """Earlier versions evaluated each part of an OR with constants as a SELECT of its own."""
    sql = "CREATE ALERT few AS SELECT k FROM a WHERE (1 = 0 OR k < 100);"
    send = Partition()
    send.plan = replace(first_plan(catalog_of(SQL + sql), shards={"e/a": "a"}), partitions=1)
    assert sorted(send(1, 2, plan=send.plan)[0]) == [0, 0, 1, 1]
    (name,) = [name for name in send.state.blobs if name.startswith("standing/") and "few@" in name]
    saved = orjson.loads(send.state.blobs[name])
    assert saved["form"][:3] == ["rows", False, 1]
    earlier = orjson.dumps(
        {**saved, "form": ["rows", False, 2, *saved["form"][3:]], "kept": [[[], []], None]}
    )
    send.state.blobs[name] = earlier

    numbers, report = send(3)
    assert numbers == [2]  # of the other alert
    assert list(report.unable) == ["few"] and "PAUSE ALERT and RESUME ALERT" in report.unable["few"]
    assert send.state.blobs[name] == earlier  # the earlier version could go on

    kept = tuple(one for one in send.plan.standing if one.alert != "few")
    numbers, report = send(4, plan=replace(send.plan, version=2, standing=kept))  # PAUSE ALERT
    assert (numbers, report.unable) == ([3], {})
    numbers, report = send(5, plan=replace(send.plan, version=3))  # RESUME ALERT
    assert report.unable == {} and len(numbers) == 2


def damaged(plan: Plan, alert: str, *path: str | int, to: Any) -> bytes:
    """The plan, with another value at a path of the node of an alert."""
    found = orjson.loads(encode_plan(plan))
    (place,) = (one["node"] for one in found["standing"] if one["alert"] == alert)
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != to
    place[path[-1]] = to
    return orjson.dumps(found)


DOMAIN = "CREATE STREAM a (k INT CHECK (k BETWEEN 0 AND 9)); CREATE ALERT ks AS SELECT k FROM a;"
OTHERS = (
    "CREATE ALERT counts AS SELECT k, count(*) AS n, max(k) AS m FROM a GROUP BY k;"
    "CREATE ALERT both AS SELECT k FROM a UNION ALL SELECT k FROM a WHERE k > 0;"
)


@pytest.mark.parametrize(
    ("alert", "path", "to"),
    [
        ("counts", ("grouping", "by", 0, 2), "nothing"),
        ("counts", ("grouping", "select", 1, 1, 2), "7"),
        ("both", ("members", 0, "select", 0, 1, 2), "nothing"),
    ],
)
def test_a_node_that_does_not_fit_together_stops_its_query_alone(
    alert: str, path: tuple[str | int, ...], to: Any
) -> None:
    """The joiner ended at such a plan, again after each start."""
    send = Partition()
    send.plan = replace(first_plan(catalog_of(DOMAIN + OTHERS), shards={"e/a": "a"}), partitions=1)
    group = Group.load(0, 1, send.state)
    (topic,) = {one.topic for query in send.plan.standing for one in query.inputs}
    tuples = [
        orjson.dumps({"k": at, "_": {"shard": "e/a", "plan": 1, "activation": 0, "place": at}})
        for at in (1, 2)
    ]
    unable, raised = {}, set()
    for plans, log in ([damaged(send.plan, alert, *path, to=to)], []), ([], tuples), ([], []):
        records = [
            Records(name, 0, values, np.arange(len(values)), np.zeros(len(values), np.int64))
            for name, values in ((topics.PLANS, plans), (topic, log))
        ]
        out = group.process(*split_plans(records), send.state, now=1, token="1")
        raised |= {orjson.loads(value)["alert"] for _, value in out.alarms}
        if out.frontier is not None:
            unable = Frontier.from_bytes(out.frontier).unable
    assert raised == {"ks", "counts", "both"} - {alert}
    assert list(unable) == [alert] and "its operators don't fit together" in unable[alert]

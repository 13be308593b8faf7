"""Standing queries at the registry: what is accepted, in which words it is refused, when an old one ends."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tamis.declarations.file_access import NO_ACCESS, UNRESTRICTED, FileAccess
from tamis.errors import InputError, RefusedError
from tamis.messaging.records import Ack, Frontier, StreamState
from tamis.plan.model import StandingQuery
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.plan.retirement import unproven
from tamis_registry.core.registry import Registry
from tamis_registry.core.shards.fleet_reports import PATIENCE
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import records, recover
from tamis_registry.core.statements.outcomes import UnboundedError
from tamis_registry.http.documents.alerts import alert_documents

STREAMS = """
CREATE STREAM bids (item INT KEY, price BIGINT);
CREATE STREAM asks (item INT KEY, price BIGINT);
"""
CROSSED = """CREATE ALERT crossed AS SELECT DISTINCT b.item FROM bids b, asks a
  WHERE a.price <= b.price AND a.item = b.item AND b.item BETWEEN 1 AND 3;"""
COUNTED = "ALERT counted {} AS SELECT item, count(*) AS n FROM bids GROUP BY item;"
SECOND = 1_000_000
BIDS, ASKS = "tamis.stream.bids.1", "tamis.stream.asks.1"


def started(state: State | None = None, file_access: FileAccess = UNRESTRICTED) -> Registry:
    planner = replace(PLANNER, file_access=file_access)
    registry = Registry(planner, state.draft() if state else State(2), state, 0, 0)
    registry.done(registry.begin(0), 0)
    return registry


def say(registry: Registry, sql: str) -> None:
    registry.done(registry.apply(sql, 0)[1], 0)


@pytest.fixture
def registry() -> Registry:
    made = started()
    say(made, STREAMS + CROSSED)
    return made


def obeyed(registry: Registry, plan: int, *, progress: int) -> None:
    """The shard of bids has taken up a plan, and told its progress under another one."""
    registry.hear(Ack("bids:e/f", "bids", "e", plan, 0, "active", 0), 0)
    for partition in range(2):
        state = StreamState(None, 0, 0, False, ("bids:e/f",), obeyed=progress)
        topics = {BIDS: state, ASKS: StreamState(None, 0, 0, True)}
        registry.follow(Frontier(partition, plan, topics, {}, {}, 0, 0, 0))


def test_a_bounded_query_is_partitioned_by_the_keys_that_its_streams_share(registry: Registry) -> None:
    (query,) = registry.plan.standing
    assert (query.bound, query.key, query.proven) == (9, ("item",), True)
    assert [(source.topic, source.partition_key) for source in query.inputs] == [
        (BIDS, ("item",)),
        (ASKS, ("item",)),
    ]
    assert all(topic.counted for stream in registry.plan.streams for topic in stream.topics)
    assert not registry.plan.definitions


@pytest.mark.parametrize(
    "sql",
    [
        # Rows of several items may be equal.
        "SELECT DISTINCT b.price FROM bids b, asks a WHERE a.item = b.item AND a.item BETWEEN 1 AND 3"
        " AND b.price BETWEEN 1 AND 2",
        "SELECT count(*) AS n FROM bids",
        "SELECT DISTINCT b.item FROM bids b, asks a WHERE b.item BETWEEN 1 AND 3 AND a.item BETWEEN 1 AND 3",
    ],
)
def test_all_else_goes_to_one_partition(registry: Registry, sql: str) -> None:
    say(registry, f"CREATE ALERT q AS {sql};")
    query = registry.plan.standing[-1]
    assert {source.partition_key for source in query.inputs} == {()}


def test_what_is_not_bounded_is_refused_in_the_words_of_explain(registry: Registry) -> None:
    statement = "CREATE " + COUNTED.format("")
    (explained,) = registry.explain(statement)
    assert explained["memory"]["verdict"] == "unbounded"
    with pytest.raises(UnboundedError) as raised:
        registry.apply(statement, 0)
    assert explained["memory"]["reason"] in str(raised.value)
    assert all(repair in str(raised.value) for repair in explained["memory"]["repairs"])
    error = raised.value
    again = pickle.loads(pickle.dumps(error))  # between processes
    assert (type(again), str(again)) == (UnboundedError, str(error))
    assert again.query.document() == error.query.document()
    say(registry, "CREATE " + COUNTED.format("WITH (allow_unbounded = true)"))
    assert [unproven(query) for query in registry.plan.queries] == [False, True]
    marked = {found["name"]: found["unproven"] for found in alert_documents(registry.view(0))}
    assert marked == {"crossed": False, "counted": True}


def test_a_replaced_query_counts_what_was_on_its_way(registry: Registry) -> None:
    registry.hear(Ack("bids:e/f", "bids", "e", registry.plan.version, 0, "waiting", 0), 0)
    change = registry.tick(0)
    assert change is not None
    registry.done(change, 0)
    say(registry, CROSSED.replace("CREATE", "CREATE OR REPLACE").replace("1 AND 3", "1 AND 2"))
    new = registry.plan.version
    assert [query.version for query in registry.plan.standing] == [new - 2, new]
    for plan, progress in ((new - 1, new - 1), (new, new - 1)):
        obeyed(registry, plan, progress=progress)
        assert registry.tick(0) is None
    obeyed(registry, new, progress=new)
    change = registry.tick(0)
    assert change is not None
    registry.done(change, 0)
    assert [query.version for query in registry.plan.standing] == [new]


def test_the_plan_is_written_again_once_for_a_frontier_record_that_waits(registry: Registry) -> None:
    version, document = registry.plan.version, registry.state.version
    announcing = Frontier(0, version, {}, {}, {}, 0, 0, 0, next_waits=True)
    registry.follow(announcing)
    assert registry.tick(0) is None
    assert registry.tick(PATIENCE - 1) is None
    change = registry.tick(PATIENCE)
    assert change is not None and change.plan is registry.plan and change.written is not None
    registry.done(change, PATIENCE)
    assert (registry.plan.version, registry.state.version) == (version, document)
    assert registry.tick(9 * PATIENCE) is None
    # Another one, which the next record of the partition follows in time.
    registry.follow(replace(announcing, time=1))
    assert registry.tick(10 * PATIENCE) is None
    registry.follow(replace(announcing, next_waits=False))
    assert registry.tick(11 * PATIENCE) is None


def test_a_replaced_query_waits_for_a_shard_that_fell_silent(registry: Registry) -> None:
    # Its edge may be cut off, and read on under the plan that it knows.
    registry.hear(Ack("bids:e/f", "bids", "e", registry.plan.version, 0, "waiting", 0), 0)
    change = registry.tick(0)
    assert change is not None
    registry.done(change, 0)
    say(registry, CROSSED.replace("CREATE", "CREATE OR REPLACE").replace("1 AND 3", "1 AND 2"))
    old, new = registry.plan.standing
    later = 2 * 3_600 * SECOND
    change = registry.tick(later)
    assert change is not None
    registry.done(change, later)
    gone = registry.plan.version
    assert not registry.plan.since

    def follow(plan: int, shards: tuple[str, ...], obeyed: int | None) -> None:
        for partition in range(2):
            state = StreamState(None, 0, 0, not shards, shards, obeyed=obeyed)
            topics = {BIDS: state, ASKS: StreamState(None, 0, 0, True)}
            registry.follow(Frontier(partition, plan, topics, {}, {}, 0, 0, 0))

    follow(gone, (), None)
    assert registry.tick(later) is None
    # What comes after it never met that shard, and needn't wait.
    say(registry, CROSSED.replace("CREATE", "CREATE OR REPLACE").replace("1 AND 3", "2 AND 2"))
    say(registry, CROSSED.replace("CREATE", "CREATE OR REPLACE").replace("1 AND 3", "3 AND 3"))
    newest = registry.plan.standing[-1]
    follow(newest.version, (), None)
    change = registry.tick(later)
    assert change is not None
    registry.done(change, later)
    assert list(registry.plan.standing) == [old, new, newest]
    # It is back: the joiner knows that before what it said of the others counts.
    registry.hear(Ack("bids:e/f", "bids", "e", gone, 0, "waiting", 0), later)
    change = registry.tick(later)
    assert change is not None
    registry.done(change, later)
    back = registry.plan.version
    assert registry.plan.since == {"bids:e/f": back}
    registry.hear(Ack("bids:e/f", "bids", "e", back, 0, "active", 0), later)
    for plan, obeyed in ((back - 1, newest.version), (back, 0)):
        follow(plan, ("bids:e/f",), obeyed)
        assert registry.tick(later) is None
    follow(back, ("bids:e/f",), back)
    change = registry.tick(later)
    assert change is not None
    registry.done(change, later)
    assert list(registry.plan.standing) == [newest]


def test_pausing_ends_it_and_resuming_begins_another(registry: Registry) -> None:
    (before,) = registry.plan.standing
    say(registry, "PAUSE ALERT crossed;")
    assert not registry.plan.standing
    say(registry, "RESUME ALERT crossed;")
    (after,) = registry.plan.standing
    assert after.version > before.version
    say(registry, "DROP ALERT crossed;")
    assert not registry.plan.standing


def graded(path: Path) -> str:
    return f"""CREATE STREAM quotes (item INT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE TABLE lots (id INT, grade BIGINT) WITH (path = '{path}');
        CREATE ALERT graded AS SELECT DISTINCT q.item, l.grade FROM quotes q, lots l WHERE q.item = l.id;"""


def test_tables_outlive_the_registry(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "lots.csv").write_text("id,grade\n1,5\n2,6\n")
    say(registry, graded(tmp_path / "lots.csv"))
    again = started(recover(records(registry.state)))
    assert [query.alert for query in again.plan.standing] == ["crossed", "graded"]
    assert isinstance(again.view(0).definition("graded", registry.plan.version), StandingQuery)
    say(again, "DROP ALERT graded; DROP TABLE lots;")
    assert "lots" not in again.state.catalog.tables


def test_tables_are_read_from_where_the_setting_says_alone(tmp_path: Path) -> None:
    inside, outside = tmp_path / "tables", tmp_path / "private.csv"
    inside.mkdir()
    for path in (inside / "lots.csv", outside):
        path.write_text("id,grade\n1,5\n")
    (inside / "link.csv").symlink_to(inside / "lots.csv")
    (inside / "way-out.csv").symlink_to(outside)
    (tmp_path / "tables-beside").symlink_to(tmp_path)
    for path in (inside / "lots.csv", inside / "link.csv", Path(os.path.relpath(inside / "lots.csv"))):
        registry = started(file_access=FileAccess.from_setting(f"/nowhere:{inside}"))
        say(registry, graded(path))
        assert [query.alert for query in registry.plan.standing] == ["graded"]
    registry = started(file_access=FileAccess.from_setting(str(inside)))
    refused = [
        outside,
        inside / ".." / "private.csv",
        inside / "way-out.csv",
        tmp_path / "tables-beside" / "private.csv",
        tmp_path / "nothing-is-here.csv",
    ]
    for path in refused:
        for take in (lambda sql: registry.apply(sql, 0), registry.explain):
            with pytest.raises(RefusedError, match="is outside of the directories in TAMIS_TABLES"):
                take(graded(path))
    with pytest.raises(RefusedError, match="TAMIS_TABLES isn't set") as raised:
        started(file_access=FileAccess.from_setting("")).apply(graded(inside / "lots.csv"), 0)
    assert str(raised.value).startswith("line 2, column 22: table lots: ")
    assert not registry.state.catalog.tables


def test_a_table_is_no_device_and_no_address(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for path, word in (
        ("/dev/zero.csv", "No such file"),
        (str(tmp_path / "zero.csv"), "isn't a regular file"),
        ("http://127.0.0.1:1/lots.csv", "is an address"),
    ):
        sql = f"CREATE TABLE lots (id INT) WITH (path = '{path}');"
        for take in (lambda sql: registry.apply(sql, 0), registry.explain):
            with pytest.raises(InputError, match=word):
                take(sql)
    assert not registry.state.catalog.tables


def test_a_registry_starts_where_a_table_is_out_of_reach_by_now(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "lots.csv").write_text("id,grade\n1,5\n2,6\n")
    say(registry, graded(tmp_path / "lots.csv"))
    registry.hear(Ack("quotes:e/f", "quotes", "e", registry.plan.version, 0, "waiting", 0), 0)
    change = registry.tick(0)
    assert change is not None
    registry.done(change, 0)
    again = "CREATE OR REPLACE ALERT graded AS SELECT q.item FROM quotes q, lots l WHERE q.item = l.id;"
    say(registry, again)
    assert len([query for query in registry.plan.standing if query.alert == "graded"]) == 2
    after = started(recover(records(registry.state)), NO_ACCESS)
    assert [query.alert for query in after.plan.standing] == ["crossed"]
    refusal = after.state.statements["alert/graded"].refusal
    assert refusal is not None and "TAMIS_TABLES isn't set" in refusal


def test_an_alert_tells_its_live_entries_beside_the_bound(registry: Registry) -> None:
    name = f"crossed@{registry.plan.version}"
    for partition, live in enumerate((2, 3)):
        registry.follow(Frontier(partition, 1, {}, {name: live}, {}, 0, 0, 0, bounds={name: 9}))
    (found,) = alert_documents(registry.view(0))
    assert (found["live"], found["bound"]) == (5, 9)

"""Leases of consumers outside the fleet: what is refused, what is one lease, when it ends, what survives."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import InputError, RefusedError, SqlErrors, TamisError
from tamis_registry.core.errors import MissingError
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import Lease, State
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.leases import lease_document

SECOND = 1_000_000
SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), n INT,
  WATERMARK FOR ts AS ts);
CREATE STREAM still (k VARCHAR KEY, x DOUBLE);
CREATE STREAM hot AS SELECT k, ts, x * 2 AS twice FROM air WHERE x > 30;
"""
MANY = f"x NOT IN ({', '.join(map(str, range(300)))})"


def started(state: State | None = None, now: int = 0) -> Registry:
    registry = Registry(PLANNER, state.draft() if state else State(2), state, 0, now)
    registry.done(registry.begin(now), now)
    return registry


@pytest.fixture
def registry() -> Registry:
    made = started()
    made.done(made.apply(SQL, 0)[1], 0)
    return made


def ask(registry: Registry, predicate: str, consumer: str = "", now: int = 0, stream: str = "air") -> Lease:
    wanted = new_lease(stream, predicate, consumer, 60, registry.state.catalog)
    lease, change = registry.subscribe(wanted, now)
    registry.done(change, now)
    return lease


@pytest.mark.parametrize(
    "case",
    [
        ("water", "x > 1", 60, MissingError, "no stream 'water'"),
        ("air", "y > 1", 60, SqlErrors, "y"),
        ("air", "x >", 60, SqlErrors, "something is missing here"),
        ("air", "x > 5 AND x < 3", 60, RefusedError, "predicate is never true"),
        ("air", "x > 1" + " OR x > 1" * 1000, 60, InputError, "characters"),
        ("air", "x > 1; x < 5", 60, SqlErrors, "unexpected ';'"),
        ("air", MANY, 60, RefusedError, "clauses"),
        ("air", "(" * 1900 + "x > 1" + ")" * 1900, 60, SqlErrors, "nested deeper"),
        ("air", "x > 1", 5, InputError, "a lease of 5 s"),
        ("still", "x > 1", 60, RefusedError, "no event time"),
    ],
)  # fmt: skip
def test_what_is_refused(registry: Registry, case: tuple[str, str, int, type[TamisError], str]) -> None:
    stream, predicate, seconds, error, what = case
    with pytest.raises(error, match=what):
        new_lease(stream, predicate, "", seconds, registry.state.catalog)


def test_who_asks_again_has_the_same_lease(registry: Registry) -> None:
    first = ask(registry, "x > 50")
    version = registry.plan.version
    assert ask(registry, "x>50.0 OR FALSE") != first  # another text is another lease, on the same topic
    assert ask(registry, "  x  >  50 ") == first and ask(registry, "x > 50", "report").id != first.id
    assert {lease.topics[""] for lease in registry.state.leases.values()} == {1}
    assert registry.plan.version == version + 2


def test_a_lease_ends_by_itself(registry: Registry) -> None:
    lease = ask(registry, "x > 50")
    assert registry.renew(lease, 50 * SECOND) == lease
    assert registry.tick(100 * SECOND) is None
    change = registry.tick(110 * SECOND)
    assert change is not None and change.plan is not None
    registry.done(change, 110 * SECOND)
    assert registry.state.leases == {} and registry.plan.streams[0].topics[0].name == "tamis.stream.hot.1"


def test_a_lease_that_is_given_back_ends_at_once(registry: Registry) -> None:
    lease, other = ask(registry, "x > 50"), ask(registry, "n = 1", stream="air")
    ended, change = registry.release(lease.id, 0)
    registry.done(change, 0)
    assert ended == lease and list(registry.state.leases) == [other.id]
    assert change.statements[f"lease/{lease.id}".encode()] is None and change.plan is not None
    with pytest.raises(MissingError, match="no lease"):
        registry.release(lease.id, 0)
    again = ask(registry, "x > 50")
    assert again.version > lease.version  # it promises nothing from before


def test_a_restart_keeps_leases_and_cuts_none_short(registry: Registry) -> None:
    leases = [ask(registry, predicate) for predicate in ("x > 99", "", "x + n > 5")]
    state = recover(records(registry.state))
    assert state is not None
    again = started(state, 1_000 * SECOND)
    assert list(again.state.leases.values()) == leases
    assert again.plan.streams == registry.plan.streams
    assert again.tick(1_059 * SECOND) is None and again.tick(1_060 * SECOND) is not None


def test_statements_from_before_there_were_places_stay_on_their_topic(registry: Registry) -> None:
    ask(registry, "")  # widens nothing: the alert below would have the stream's first topic to itself
    change: Change = registry.apply("CREATE ALERT q AS SELECT k FROM air WHERE x > 99;", 0)[1]
    registry.done(change, 0)
    old = {key: value for key, value in records(registry.state).items() if not key.startswith(b"lease/")}
    for later in (b',"topics":{"air":2}', b',"outside":[1]'):
        assert any(later in value for value in old.values())
        old = {key: value.replace(later, b"") for key, value in old.items()}
    state = recover(old)
    assert state is not None and state.statements["alert/q"].topics == {}
    again = started(state)
    (definition,) = again.plan.definitions
    assert definition.inputs[0].topic == "tamis.stream.air.1"
    assert again.state.statements["alert/q"].topics == {"air": 1}


def test_a_stream_with_leases_is_not_dropped(registry: Registry) -> None:
    ask(registry, "twice > 90", "report", stream="hot")
    with pytest.raises(TamisError, match="read from outside the fleet by report"):
        registry.apply("DROP STREAM hot;", 0)


def test_a_derived_stream_is_read_from_its_own_topic(registry: Registry) -> None:
    lease = ask(registry, "twice > 90", stream="hot")
    document: dict[str, Any] = lease_document(registry.view(0), lease)
    assert (document["topic"], document["filter"]) == ("tamis.stream.hot.1", "twice > 90")
    assert [t.name for t in registry.plan.streams[0].topics] == ["tamis.stream.hot.1"]

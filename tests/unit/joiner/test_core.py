"""Parts of the joiner's core: frontiers, duplicates, identities, encodings of the state, dead letters."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from tests.stream_records import final_record, progress_record

from tamis.errors import RefusedError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.messaging import topics
from tamis.messaging.dead_letters import Reason
from tamis.messaging.records import END_OF_TIME, Frontier
from tamis.operators.time_join.key_codes import KeyCodes
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import (
    Definition,
    Input,
    Plan,
    StreamColumn,
    StreamPlan,
    TimeBound,
    TopicPlan,
)
from tamis_joiner.core.compiled_plan import join_partners
from tamis_joiner.core.frontier_report import Output
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME, ProgressRecord, Records, split_plans
from tamis_joiner.core.records.tuple_columns import TupleColumns
from tamis_joiner.core.state import (
    decode_records,
    decode_tuples,
    encode_records,
    encode_tuples,
)
from tamis_joiner.core.tuples.stored_tuples import merge, with_key_codes
from tamis_joiner.monitoring.deletions import lost, offsets_of

A, B, C = (topics.stream_topic(name, 1) for name in "abc")
AB = ("a0", "b1")
SECOND = 1_000_000
SCHEMA = {"k": Type.VARCHAR, "ts": Type.TIMESTAMP, "v": Type.DOUBLE, "on": Type.BOOLEAN, "n": Type.INT}


class State(dict[str, bytes]):
    """A dict as a state map."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)


def stream(
    name: str, columns: tuple[str, ...] = ("v",), partition_key: tuple[str, ...] = ("k",)
) -> StreamPlan:
    types = {"k": Type.VARCHAR, "ts": Type.TIMESTAMP, "v": Type.DOUBLE, "w": Type.DOUBLE}
    return StreamPlan(
        name,
        tuple(StreamColumn(column, type_, False, None) for column, type_ in types.items()),
        "ts",
        0,
        None,
        None,
        3600 * SECOND,
        (TopicPlan(topics.stream_topic(name, 1), partition_key, columns, ()),),
    )


def joins(
    alert: str, version: int, *streams: str, lo: int = -5 * SECOND, hi: int = 5 * SECOND, column: str = "v"
) -> Definition:
    """Neighbours within bounds; every value above 0."""
    aliases = [f"{name}{i}" for i, name in enumerate(streams)]
    values: list[Expr] = [
        Call(">", (Column(a, column, Type.DOUBLE), Literal(0.0, Type.DOUBLE)), Type.BOOLEAN) for a in aliases
    ]
    return Definition(
        alert,
        version,
        tuple(
            Input(a, s, topics.stream_topic(s, 1), "ts", ("k",), None, 0)
            for a, s in zip(aliases, streams, strict=True)
        ),
        (),
        tuple(TimeBound(x, y, lo, hi) for x, y in pairwise(aliases)),
        Call("and", tuple(values), Type.BOOLEAN) if len(values) > 1 else values[0],
        (("v", Column(aliases[0], column, Type.DOUBLE)),),
    )


def plan(
    version: int,
    *definitions: Definition,
    since: dict[str, int] | None = None,
    names: str = "ab",
    **more: Any,
) -> Plan:
    return Plan(
        version,
        1,
        tuple(stream(name, **more) for name in names),
        definitions,
        {f"e/{n}": 1 for n in names} if since is None else since,
        {f"{e}/{n}": n for n in names for e in "ef"},
    )


def tuple_of(
    stream_: str, time: int, version: int = 1, key: str | None = "x", late: bool = False, **values: Any
) -> bytes:
    envelope = {"shard": f"e/{stream_}", "plan": version, "activation": 0, **({"late": True} if late else {})}
    return orjson.dumps({"k": key, "ts": time, "v": 1.0, **values, "_": envelope})


class Driver:
    """A group with its state, one batch after the other; offsets count up. `keep`: use the last group again,
    as in a process that goes on.
    """

    def __init__(self, keep: bool = False) -> None:
        self.state = State()
        self.batch = 0
        self._keep = keep
        self._group: Group | None = None

    def __call__(self, *plans: Plan, **values: list[bytes]) -> Output:
        """Values by stream name."""
        self.batch += 1
        some = [(topics.PLANS, [encode_plan(p) for p in plans])] if plans else []
        some += [(topics.stream_topic(name, 1), list(log)) for name, log in values.items()]
        found = [Records(t, 0, log, np.arange(len(log)), np.full(len(log), self.batch)) for t, log in some]
        self._group = group = Group.load(0, 1, self.state, self._group if self._keep else None)
        return group.process(*split_plans(found), self.state, now=self.batch, token=f"{self.batch}")


def alarms(output: Output) -> list[dict[str, Any]]:
    return [orjson.loads(value) for _, value in output.alarms]


def report(output: Output) -> Frontier:
    assert output.frontier is not None
    return Frontier.from_bytes(output.frontier)


# ---- shards and frontiers


def test_frontier_is_the_least_of_the_listed_shards_and_never_falls() -> None:
    reached = Frontiers()
    two = plan(1, joins("q", 1, "a", "b"), since={"e/a": 1, "f/a": 1, "e/b": 1})
    others = join_partners(two)
    reached.obey(two)
    reached.take(A, ProgressRecord("progress", "e/a", 1, 10), others)
    reached.advance(others)
    assert reached.of(A) == BEGINNING_OF_TIME
    reached.take(A, ProgressRecord("progress", "f/a", 1, 7), others)
    reached.advance(others)
    assert reached.of(A) == 7
    reached.take(A, ProgressRecord("progress", "f/a", 1, 3), others)
    reached.advance(others)
    assert reached.of(A) == 7
    reached.obey(plan(2, joins("q", 1, "a", "b"), since={"e/a": 1, "f/a": 2, "e/b": 1}))
    reached.take(A, ProgressRecord("progress", "f/a", 1, 50), others)  # of before it was listed anew
    reached.take(A, ProgressRecord("final", "f/a", 1, 0), others)
    reached.take(A, ProgressRecord("progress", "e/a", 1, 20), others)
    reached.advance(others)
    assert reached.of(A) == 7
    assert _reloaded(reached, two).to_json() == reached.to_json()


def _reloaded(frontiers: Frontiers, obeyed: Plan) -> Frontiers:
    return Frontiers.from_json(orjson.loads(orjson.dumps(frontiers.to_json())), obeyed)


def test_a_stream_without_shards_follows_its_partners_but_not_into_their_end() -> None:
    reached = Frontiers()
    three = plan(1, joins("q", 1, "a", "b"), joins("r", 1, "a", "c"), names="abc")
    others = join_partners(three)
    reached.obey(three)
    for topic, shard, time in ((A, "e/a", 5), (B, "e/b", END_OF_TIME), (C, "e/c", 9)):
        reached.take(topic, ProgressRecord("progress", shard, 1, time), others)
    reached.advance(others)
    reached.take(A, ProgressRecord("final", "e/a", 1, 0), others)
    reached.advance(others)
    assert reached.void(A)
    assert reached.of(A) == 9
    reached.obey(plan(2, joins("q", 1, "a", "b"), names="abc"))  # still lists e/a since 1: it has left
    assert reached.void(A)
    reached.obey(plan(3, joins("q", 1, "a", "b"), names="abc", since={"e/a": 3, "e/b": 1, "e/c": 1}))
    assert not reached.void(A)


def test_a_stream_that_never_had_a_shard_follows_its_partners_at_a_distance_of_max_stall() -> None:
    reached, first = Frontiers(), plan(1, joins("q", 1, "a", "b"), since={"e/a": 1})
    first = replace(first, streams=tuple(replace(stream, max_stall=40) for stream in first.streams))
    others = join_partners(first)

    def after(time: int) -> int:
        nonlocal reached
        reached.take(A, ProgressRecord("progress", "e/a", 1, time), others)
        reached = _reloaded(reached, first)
        reached.advance(others)
        return reached.of(B)

    reached.obey(first)
    reached.advance(others)
    assert reached.of(B) == BEGINNING_OF_TIME
    assert after(100) == 60
    reached.note_tuples(A, 115)
    assert after(101) == 75  # from the newest tuple, which may be far ahead of the frontier
    reached.note_tuples(A, 900)
    assert after(102) == 102  # but not ahead of the frontier
    assert after(END_OF_TIME) == 860  # the newest tuple of a partner that has ended
    # Once it has had a shard, it follows without a distance.
    second = replace(first, version=2, since={"e/a": 1, "e/b": 2}, shard_streams={"e/a": "a", "e/b": "b"})
    reached.obey(second)
    reached.advance(others)
    assert reached.of(B) == 860
    reached.take(B, ProgressRecord("final", "e/b", 2, 0), others)
    reached.advance(others)
    assert reached.of(B) == END_OF_TIME
    assert _reloaded(reached, second).unbegun(B) is False


@pytest.mark.parametrize("end", [10 * SECOND, END_OF_TIME])
def test_a_stream_whose_shard_comes_later_loses_no_alarm_of_the_last_max_stall(end: int) -> None:
    """The shards of two edges are listed one plan after the other, and both read old readings."""
    send, first = Driver(), plan(1, joins("q", 1, "a", "b", lo=0, hi=0), since={"e/a": 1})
    first = replace(first, streams=tuple(replace(stream, max_stall=4 * SECOND) for stream in first.streams))
    old = [tuple_of("a", n * SECOND) for n in range(11)]
    send(first, a=[*old, progress_record("e/a", 1, 0, end)])
    send(replace(first, version=2, since={"e/a": 1, "e/b": 2}))
    found = alarms(send(b=[tuple_of("b", n * SECOND, 2) for n in range(11)]))
    assert sorted(alarm["tuples"]["b1"]["ts"] for alarm in found) == [n * SECOND for n in range(6, 11)]


def test_without_a_shard_of_the_partner_the_tuples_of_max_stall_and_the_span_are_kept() -> None:
    r, newest, sent = random.Random(78), 0, set[int]()
    stall, span = 40 * SECOND, 5 * SECOND
    first = plan(1, joins("q", 1, "a", "b", lo=-span, hi=span), since={"e/a": 1})
    first = replace(first, streams=tuple(replace(stream, max_stall=stall) for stream in first.streams))
    send = Driver()
    send(first)
    for _ in range(60):
        newest += r.choice((0, 1, 1, 2, 30)) * SECOND
        times = {newest, newest - r.randint(0, 3) * SECOND}
        sent |= times
        watermark = newest - r.choice((3, 10, 39)) * SECOND
        output = send(a=[*map(partial(tuple_of, "a"), times), progress_record("e/a", 1, 0, watermark)])
        assert report(output).topics[A].tuples == sum(time >= newest - stall - span for time in sent)


def test_a_watched_stream_has_the_shards_of_its_base() -> None:
    reached, found = Frontiers(), plan(1, joins("q", 1, "a", "b"), since={"e/a": 1, "f/a": 1, "e/b": 1})
    (watched,) = (
        replace(stream, name="a_similar", base="a") for stream in found.streams if stream.name == "a"
    )
    found = replace(found, streams=(watched, *(stream for stream in found.streams if stream.name != "a")))
    reached.obey(found)
    assert (reached.listed(A), reached.listed(B)) == (("e/a", "f/a"), ("e/b",))


# ---- tuples


def test_duplicate_is_stored_once_with_the_greatest_version_and_joined_again() -> None:
    send = Driver()
    send(plan(1, joins("old", 1, "a", "b")), a=[tuple_of("a", 0)], b=[tuple_of("b", 0)])
    both = plan(2, joins("old", 1, "a", "b"), joins("new", 2, "a", "b"))
    assert alarms(send(both, b=[tuple_of("b", 0, 2)]))[0]["alert"] == "old"
    again = alarms(send(a=[tuple_of("a", 0, 2)]))
    assert sorted(a["alert"] for a in again) == ["new", "old"]
    # A copy of an older version that comes later takes nothing away.
    again = alarms(send(a=[tuple_of("a", 0, 1)]))
    assert sorted(a["alert"] for a in again) == ["new", "old"]
    assert sum(state.tuples for state in report(send(a=[])).topics.values()) == 2


def test_a_column_of_another_type_is_null_in_tuples_of_before() -> None:
    send = Driver()
    first = plan(1, joins("q", 1, "a", "b"))
    send(first, a=[tuple_of("a", 0)], b=[tuple_of("b", SECOND)])
    told = tuple(
        replace(s, columns=tuple(replace(c, type=Type.VARCHAR) if c.name == "v" else c for c in s.columns))
        for s in first.streams
    )
    texts = [Call("=", (Column(a, "v", Type.VARCHAR), Literal("x", Type.VARCHAR)), Type.BOOLEAN) for a in AB]
    q = replace(
        joins("q", 1, "a", "b"),
        condition=Call("and", tuple(texts), Type.BOOLEAN),
        select=(("v", Column("a0", "v", Type.VARCHAR)),),
    )
    out = send(replace(first, version=2, streams=told, definitions=(q,)), a=[tuple_of("a", 2, 2, v="x")])
    assert not alarms(out)
    (alarm,) = alarms(send(b=[tuple_of("b", 3, 2, v="x")]))
    assert alarm["row"] == {"v": "x"}


def test_records_above_the_plan_wait_for_it() -> None:
    send = Driver()
    first = send(
        plan(1, joins("q", 1, "a", "b")), a=[tuple_of("a", 0, 2), progress_record("e/a", 2, 0, 99 * SECOND)]
    )
    assert report(first).parked == 2
    assert not alarms(send(a=[tuple_of("a", 1, 2)], b=[tuple_of("b", 0, 1)]))
    raised = send(plan(2, joins("q", 1, "a", "b")))
    assert [a["tuples"]["a0"]["ts"] for a in alarms(raised)] == [0, 1]
    after = report(send(b=[]))
    assert after.parked == 0
    assert after.topics[A].frontier == 99 * SECOND


def test_older_plans_are_ignored_and_those_of_another_fleet_are_dead_letters() -> None:
    send = Driver()
    send(plan(2, joins("q", 2, "a", "b")))
    assert report(send(plan(1))).plan == 2
    other = Plan(3, 4)
    output = send(other)
    assert [letter.reason for letter in output.dead_letters] == [Reason.FOREIGN]
    assert "4 partitions" in output.dead_letters[0].error
    assert report(output).plan == 2


def test_a_plan_that_names_what_it_lacks_is_a_dead_letter() -> None:
    send = Driver()
    whole = plan(2, joins("q", 2, "a", "b"))
    send(whole)
    output = send(replace(whole, version=3, streams=whole.streams[:1]))
    assert [letter.reason for letter in output.dead_letters] == [Reason.UNDECODABLE]
    assert "doesn't contain" in output.dead_letters[0].error
    assert report(output).plan == 2


@pytest.mark.parametrize("keep", [False, True])
def test_frontier_record_waits_for_the_alarms_before_it(keep: bool) -> None:
    send = Driver(keep)
    whole = plan(1, joins("q", 1, "a", "b"))
    before = report(send(whole, a=[tuple_of("a", 0)]))
    assert not before.next_waits
    raised = send(b=[tuple_of("b", 0), progress_record("e/b", 1, 0, 3 * SECOND)])
    assert len(raised.alarms) == 1
    assert report(raised) == replace(before, next_waits=True, time=report(raised).time)
    raised = send(a=[tuple_of("a", 1)])
    assert report(raised).topics[B].frontier == 3 * SECOND
    assert report(raised).topics[A].tuples == 1
    assert report(raised).next_waits
    # The plan again makes a batch, too.
    last = report(send(whole))
    assert last.alarms == {"q": 2} and not last.next_waits


def test_the_first_batch_of_all_announces_its_record_too() -> None:
    first = report(Driver()(plan(1, joins("q", 1, "a", "b")), a=[tuple_of("a", 0)], b=[tuple_of("b", 0)]))
    assert (first.plan, first.topics, first.next_waits) == (0, {}, True)


def test_identity_is_of_alert_and_tuples_alone() -> None:
    one, two = Driver(), Driver()
    one(plan(1, joins("q", 1, "a", "b")), a=[tuple_of("a", 0)])
    (first,) = alarms(one(b=[tuple_of("b", 0)]))
    wide = plan(7, joins("q", 3, "a", "b"), columns=("v", "w"))
    (second,) = alarms(two(wide, b=[tuple_of("b", 0, 5, w=2.0)], a=[tuple_of("a", 0, 4, v=1, late=True)]))
    assert first["id"] == second["id"]
    assert (second["plan"], second["definition"], second["late"]) == (7, 3, True)
    assert "late" not in first
    (other,) = alarms(two(a=[tuple_of("a", 0, 4, v=2.0)]))
    assert other["id"] != first["id"]
    assert first["row"] == {"v": 1.0}
    assert first["tuples"] == {"a0": {"k": "x", "ts": 0, "v": 1.0}, "b1": {"k": "x", "ts": 0, "v": 1.0}}
    assert first["arrived"] == 2


def test_the_page_on_topics_has_every_field_of_an_alarm() -> None:
    page = (Path(__file__).parents[3] / "docs" / "topics.md").read_text().partition("## Alarms\n")[2]
    always = orjson.loads(page.partition("```json\n")[2].partition("```")[0])
    send = Driver()
    send(plan(1, joins("q", 1, "a", "b")), a=[tuple_of("a", 0)])
    (alarm,) = alarms(send(b=[tuple_of("b", 0)]))
    assert list(alarm) == list(always)
    (late,) = alarms(send(b=[tuple_of("b", 1, late=True)]))
    assert late.keys() - alarm.keys() == {"late"}
    assert all(f'"{name}": ' in page for name in ("late", "incomplete", "window"))


def test_null_keys_join_nothing_but_alone() -> None:
    send = Driver()
    both = plan(1, joins("pair", 1, "a", "b"), joins("alone", 1, "a"))
    raised = alarms(send(both, a=[tuple_of("a", 0, key=None)], b=[tuple_of("b", 0, key=None)]))
    assert [a["alert"] for a in raised] == ["alone"]
    assert raised[0]["key"] == [None]


def test_a_tuple_also_joins_itself() -> None:
    send = Driver()
    raised = alarms(send(plan(1, joins("q", 1, "a", "a")), a=[tuple_of("a", 0), tuple_of("a", 1)]))
    assert sorted((a["tuples"]["a0"]["ts"], a["tuples"]["a1"]["ts"]) for a in raised) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_tuples_of_dropped_alerts_go_and_wider_plans_keep_older_tuples() -> None:
    send = Driver()
    send(plan(1, joins("q", 1, "a", "b")), a=[tuple_of("a", 0)])
    wide = plan(
        2,
        joins("q", 1, "a", "b"),
        joins("w", 2, "a", "b", lo=-90 * SECOND, hi=90 * SECOND, column="w"),
        columns=("v", "w"),
    )
    assert len(alarms(send(wide, b=[tuple_of("b", 0, 2, w=1.0)]))) == 1
    assert len(alarms(send(a=[tuple_of("a", 1, 2, w=1.0)]))) == 2
    assert report(send(plan(3))).topics[A].tuples == 0
    assert not [name for name in send.state if name.startswith("slice/")]


# ---- dead letters


def test_what_is_no_record_is_a_dead_letter_whole() -> None:
    poison = {
        b"": Reason.UNDECODABLE,
        b"\xff": Reason.UNDECODABLE,
        b"[1]": Reason.FOREIGN,
        b'{"k": "x", "ts": 1, "v": 1.0}': Reason.FOREIGN,
        b'{"_": {"plan": "1"}}': Reason.FOREIGN,
        b'{"_": {"plan": 1, "kind": "other", "shard": "s"}}': Reason.FOREIGN,
        **{
            b'{"_": {"plan": 1, "kind": "progress", "shard": "s", "%s": 18446744073709551615}}'
            % name: Reason.FOREIGN
            for name in (b"event_time", b"activation", b"place")
        },
        b'{"_": {"plan": 18446744073709551615, "kind": "final", "shard": "s"}}': Reason.FOREIGN,
        b'{"_": {"plan": 18446744073709551615, "shard": "s"}}': Reason.FOREIGN,
        b'{"_": {"plan": 1, "kind": "progress", "shard": "s", "event_time": NaN}}': Reason.UNDECODABLE,
        b'{"_": {"plan": 1, "kind": "progress", "shard": {"s": 1}}}': Reason.FOREIGN,
        b"[" * 100_000: Reason.UNDECODABLE,
        tuple_of("a", 1, v="warm"): Reason.WRONG_TYPE,
        tuple_of("a", 1, ts=None): Reason.MISSING_FIELD,
        tuple_of("a", 1, ts=2**60): Reason.OUT_OF_DOMAIN,
        tuple_of("a", 1, ts=-(2**63)): Reason.OUT_OF_DOMAIN,
        tuple_of("a", 1, ts=True): Reason.WRONG_TYPE,
    }
    send = Driver()
    values = [tuple_of("a", 0), *poison, tuple_of("a", 2)]
    output = send(plan(1, joins("q", 1, "a", "b")), a=values)
    assert {letter.payload: letter.reason for letter in output.dead_letters} == poison
    letters = output.dead_letters
    assert all(letter.source == A and values[letter.offset] == letter.payload for letter in letters)
    assert report(output).topics[A].tuples == 2
    assert sum(report(output).dead.values()) == len(poison)
    bad_plan = Records(topics.PLANS, 0, [b"{}"], np.array([3]), np.array([0]))
    output = Group.load(0, 1, send.state).process([bad_plan], [], send.state, now=0, token="t")
    assert [letter.reason for letter in output.dead_letters] == [Reason.UNDECODABLE]


# ---- state


def fresh_tuples() -> TupleColumns:
    return TupleColumns(
        np.array([5, 3, 5], np.int64),
        np.array([1, 2, 3], np.int64),
        np.array([True, False, False]),
        np.array([9, 8, 7], np.int64),
        {
            "k": Vector.from_list(["x", None, "x"], Type.VARCHAR),
            "ts": Vector.from_list([5, 3, 5], Type.TIMESTAMP),
            "v": Vector.from_list([1.5, None, 1.5], Type.DOUBLE),
            "on": Vector.from_list([True, None, True], Type.BOOLEAN),
            "n": Vector.from_list([7, None, 7], Type.INT),
        },
    )


def test_tuples_come_back_from_their_blob() -> None:
    live = merge([with_key_codes(fresh_tuples(), ("k",), KeyCodes(), new=True)])
    assert live.times.tolist() == [3, 5]
    assert (live.versions.tolist(), live.late.tolist(), live.arrived.tolist()) == (
        [2, 3],
        [False, False],
        [8, 7],
    )
    back = decode_tuples(encode_tuples(live, SCHEMA), SCHEMA)
    assert {name: vector.to_list() for name, vector in back.columns.items()} == {
        "k": [None, "x"],
        "ts": [3, 5],
        "v": [None, 1.5],
        "on": [None, True],
        "n": [None, 7],
    }
    assert (back.versions.tolist(), back.late.tolist(), back.arrived.tolist()) == (
        [2, 3],
        [False, False],
        [8, 7],
    )
    other = decode_tuples(
        encode_tuples(live, SCHEMA), {"k": Type.VARCHAR, "v": Type.VARCHAR, "more": Type.DOUBLE}
    )
    assert other.columns["v"].to_list() == other.columns["more"].to_list() == [None, None]


def test_parked_records_come_back_by_topic() -> None:
    parked = [
        Records(A, 3, [b"1", b"2"], np.array([4, 5]), np.array([6, 7])),
        Records(B, 3, [b"3"], np.array([8]), np.array([9])),
    ]
    back = decode_records(encode_records(parked))
    assert [(r.topic, r.partition, r.values, r.offsets.tolist(), r.arrived.tolist()) for r in back] == [
        (r.topic, r.partition, r.values, r.offsets.tolist(), r.arrived.tolist()) for r in parked
    ]


def test_state_of_another_fleet_or_format_is_refused() -> None:
    send = Driver()
    send(plan(1, joins("q", 1, "a", "b")))
    with pytest.raises(RefusedError, match="1 partitions; this fleet has 2"):
        Group.load(0, 2, send.state)
    send.state["meta"] = orjson.dumps({**orjson.loads(send.state["meta"]), "format": 99})
    with pytest.raises(RefusedError, match="format 99"):
        Group.load(0, 1, send.state)


def test_memory_of_a_failed_attempt_is_not_trusted() -> None:
    """The attempt trims a tuple of a slice that the retry still needs; memory must not pass on that loss."""
    state = State()

    def batch(memory: Group | None, token: str, into: State, **values: list[bytes]) -> tuple[Group, Output]:
        found = [
            Records(topics.stream_topic(name, 1), 0, log, np.arange(len(log)), np.zeros(len(log), np.int64))
            for name, log in values.items()
        ]
        plans = (
            []
            if "meta" in into
            else [
                Records(
                    topics.PLANS,
                    0,
                    [encode_plan(plan(1, joins("q", 1, "a", "b")))],
                    np.array([0]),
                    np.array([0]),
                )
            ]
        )
        group = Group.load(0, 1, into, memory)
        return group, group.process(plans, found, into, now=0, token=token)

    batch(None, "1", state, a=[tuple_of("a", 0), tuple_of("a", SECOND)])
    lost_one = State(state)
    memory, _ = batch(None, "2", lost_one, b=[progress_record("e/b", 1, 0, 5 * SECOND + 1)])
    memory, _ = batch(memory, "3", lost_one, b=[final_record("e/b", 1)])
    # Both batches are lost, as if an older checkpoint had been put back.
    _, output = batch(memory, "4", state, b=[tuple_of("b", SECOND)])
    assert len(output.alarms) == 2


# ---- Kafka's offsets


def test_lost_records_are_those_before_the_least_offset() -> None:
    sources: list[dict[str, Any]] = [
        {"startOffset": {A: {"0": 5, "1": 7}}, "endOffset": None},
        {"startOffset": '{"x": {"0": 1}}'},
    ]
    start = offsets_of(sources, "startOffset")
    assert start == {A: {0: 5, 1: 7}, "x": {0: 1}}
    assert offsets_of(sources, "endOffset") == {}
    assert lost(start, {A: {0: 5, 1: 9}}) == {(A, 1): 2}


def test_the_tuples_of_a_derived_stream_are_for_others() -> None:
    """They have other columns, here without the time. None of them is kept or becomes a dead letter."""
    run = Driver()
    both = plan(1, joins("q", 1, "a", "b"), since={"e/a": 1, "e/b": 1})
    select = (("place", Column("", "k", Type.VARCHAR)),)
    warm = TopicPlan(topics.stream_topic("warm", 1), ("k",), (), (), select)
    base, *others = both.streams
    made = replace(both, streams=(replace(base, topics=(*base.topics, warm)), *others))
    computed = orjson.dumps({"place": "x", "_": {"shard": "e/a", "plan": 1, "activation": 0}})
    out = run(
        made, warm=[computed, progress_record("e/a", 1, 0, 5)], a=[tuple_of("a", 1)], b=[tuple_of("b", 1)]
    )
    assert len(out.alarms) == 1
    assert out.dead_letters == []
    assert not any("warm" in name for name in run.state if name.startswith("slice/"))


@pytest.mark.parametrize(
    ("known", "newer", "error"),
    [
        (b'{"format":1,', b'{"format":2,', "format 2; this service reads format 1"),
        (b'"streams":[{', b'"streams":[{"colour":"red",', "unknown field `colour`"),
    ],
)
def test_a_newer_plan_is_kept_until_a_joiner_can_read_it(
    known: bytes, newer: bytes, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record doesn't come again, and tuples under the plan wait for it."""
    send = Driver()
    send(plan(1, joins("q", 1, "a", "b")))

    def batch(*values: bytes) -> Output:
        send.batch += 1
        records = Records(topics.PLANS, 0, values, np.arange(len(values)), np.full(len(values), send.batch))
        group = Group.load(0, 1, send.state)
        return group.process([records], [], send.state, now=send.batch, token=f"{send.batch}")

    document = encode_plan(plan(2, joins("q", 1, "a", "b"))).replace(known, newer, 1)
    out = batch(document)
    assert [letter.reason for letter in out.dead_letters] == [Reason.UNDECODABLE]
    assert error in out.dead_letters[0].error
    assert report(out).plan == 1
    send(a=[tuple_of("a", 0, 2)], b=[tuple_of("b", 0, 2)])
    assert report(send(b=[])).parked == 2

    monkeypatch.setattr(
        "tamis_joiner.core.compiled_plan.decode_plan",
        lambda data: decode_plan(data.replace(newer, known, 1)),
    )
    assert len(alarms(batch())) == 1
    after = report(batch())
    assert (after.plan, after.parked) == (2, 0)
    assert not [name for name in send.state if name.startswith("newer/")]

"""Episodes don't depend on the order and repetition of alarms; each opens once and closes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import orjson
from hypothesis import given
from msgspec import Raw

from tamis.messaging.column_names import UNNAMED, ColumnNames
from tamis.plan.model import Definition, Input, Plan, TimeBound
from tamis_alerts.core.alarm_ids import CHUNK, MOST_CHUNKS
from tamis_alerts.core.episodes import (
    ID_DIGITS,
    Alarm,
    Episode,
    KeyState,
    Step,
    advance,
    take,
)
from tamis_alerts.core.rules import DEFAULT_GAP, Rule, rules_of

END = 10**9


def rule(gap: int = 10, for_: int = 0, memory: int = 100) -> Rule:
    return Rule("hot", gap, for_, memory, "critical", (("team", "north"),), frozenset({"t"}))


def alarm(time: int, number: int = 0) -> Alarm:
    return Alarm("hot", ("k",), f"{time:08}-{number:023}", time, Raw(orjson.dumps({"t": time})))


def through(alarms: Sequence[Alarm], what: Rule) -> list[Episode]:
    """All events of a stream of alarms that ends."""
    records: dict[int | None, bytes | None] = {}
    events: list[Episode] = []
    for one in alarms:
        state = restored(records)
        events += take(state, [one], what).events
        write(state, records)
    last = advance("hot", ("k",), state, END, what)
    write(state, records)
    assert not state and set(records.values()) == {None}, "nothing is remembered for ever"
    return [*events, *last.events]


def write(state: KeyState, records: dict[int | None, bytes | None]) -> None:
    """The records of a state, as the changelog has them: those of closed chunks by number, and its own."""
    records.update(state.alarm_ids.changes())
    records[None] = state.to_bytes()


def restored(records: dict[int | None, bytes | None]) -> KeyState:
    state = KeyState()
    for number, record in records.items():
        if number is None:
            state.restore(record)
        else:
            state.alarm_ids.restore_closed(number, record)
    state.alarm_ids.restored()
    return state


def test_an_episode_ends_with_the_severity_and_labels_with_which_it_began() -> None:
    """Sinks are chosen by them. Its alert was replaced, and the service was restarted."""
    names = ColumnNames(("station", "bucket"), ("bucket",), ("ts",))
    before = replace(rule(), names=names)
    after = replace(rule(), severity="info", labels=(("team", "south"),), names=ColumnNames(("room",)))
    records: dict[int | None, bytes | None] = {}
    state = KeyState()
    (opened,) = take(state, [alarm(5)], before).events
    write(state, records)
    state = restored(records)
    (grown,) = take(state, [alarm(15)], after).events
    (closed,) = advance("hot", ("k",), state, END, after).events
    assert [one.event for one in (opened, grown, closed)] == ["opened", "open", "closed"]
    told = {(one.severity, *one.labels.items()) for one in (opened, grown, closed)}
    assert told == {("critical", ("team", "north"))}
    assert [ColumnNames.of(one.headers) for one in (opened, grown, closed)] == [names] * 3


def test_an_episode_that_an_earlier_version_opened_has_the_severity_of_now() -> None:
    run = {"start": 5, "end": 5, "alarms": 1, "row": {}, "episode": "e", "told": 5}
    state = KeyState()
    state.restore(orjson.dumps({"runs": [run]}))
    (closed,) = advance("hot", ("k",), state, END, rule()).events
    assert (closed.severity, closed.labels) == ("critical", {"team": "north"})
    # Its opening had no names of the key's values: to Alertmanager, its close is of the same alert.
    assert closed.headers == []


def test_an_opening_of_an_earlier_version_does_not_say_which_columns_are_times() -> None:
    run = {"start": 5, "end": 5, "alarms": 1, "row": {}, "episode": "e", "told": 5}
    openings = {"e": {"severity": None, "labels": dict[str, str](), "columns": ["station"]}}
    state = KeyState()
    state.restore(orjson.dumps({"runs": [run], "openings": openings}))
    (closed,) = advance("hot", ("k",), state, END, rule()).events
    assert ColumnNames.of(closed.headers) == ColumnNames(("station",))


def test_headers_without_names_and_with_others_give_none() -> None:
    """A later version may write further members."""
    assert ColumnNames.of(None) == ColumnNames.of([("columns", b"no list"), ("times", b"[]")]) == UNNAMED
    found = ColumnNames.of({"times": b'{"row":["ts"],"window":["end"]}'})
    assert found == ColumnNames(row_times=("ts",))


def test_an_earlier_version_can_read_the_state_again() -> None:
    """Earlier versions take the fields of a run as arguments of a call, and end at one they don't know."""
    state = KeyState()
    take(state, [alarm(5)], rule())
    found = orjson.loads(state.to_bytes() or b"")
    assert [set(run) for run in found["runs"]] == [{"start", "end", "alarms", "row", "episode", "told"}]
    assert set(found["open"]) == {"number", "latest", "ids"}
    assert list(found["openings"]) == [found["runs"][0]["episode"]]
    advance("hot", ("k",), state, END, rule())
    assert state.openings == {}


def test_the_page_on_topics_has_every_field_of_an_episode() -> None:
    page = (Path(__file__).parents[3] / "docs" / "topics.md").read_text().partition("## Episodes\n")[2]
    shown = orjson.loads(page.partition("```json\n")[2].partition("```")[0])
    (opened, closed) = through([alarm(5)], rule())
    assert list(orjson.loads(opened.to_bytes())) == list(orjson.loads(closed.to_bytes())) == list(shown)
    assert shown["event"] == opened.event


def spans(times: Sequence[int], gap: int, for_: int) -> list[tuple[int, int, int]]:
    """Straight from the definition: sorted alarms, cut where more than the gap lies between two."""
    found: list[list[int]] = []
    for time in sorted(times):
        if found and time - found[-1][-1] <= gap:
            found[-1].append(time)
        else:
            found.append([time])
    return [(run[0], run[-1], len(run)) for run in found if run[-1] - run[0] >= for_]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=20, unique=True),
    st.integers(0, 12),
    st.integers(0, 15),
    st.randoms(use_true_random=False),
)
def test_any_order_and_repetition_gives_the_same_episodes(
    times: list[int], gap: int, for_: int, random: Random
) -> None:
    alarms = [alarm(t) for t in times] + [alarm(random.choice(times)) for _ in range(5)]
    random.shuffle(alarms)
    events = through(alarms, rule(gap, for_))
    opened = [e.episode for e in events if e.event == "opened"]
    closed = [e.episode for e in events if e.event == "closed"]
    assert len(set(opened)) == len(opened)
    assert sorted(opened) == sorted(closed), "what was opened is closed, once"
    whole = [(e.start, e.end, e.alarms) for e in events if e.event == "closed"]
    # Two episodes that an alarm between them joined late were both opened: the swallowed one closed early.
    assert set(spans(times, gap, for_)) <= set(whole)
    if alarms == sorted(alarms, key=lambda a: a.event_time):
        assert spans(times, gap, for_) == whole


def test_for_waits_until_alarms_span_it() -> None:
    events = through([alarm(0), alarm(5), alarm(8), alarm(40)], rule(gap=10, for_=8))
    assert [(e.event, e.start, e.end, e.alarms) for e in events] == [("opened", 0, 8, 3), ("closed", 0, 8, 3)]


def test_a_lasting_episode_is_told_about_once_a_gap() -> None:
    events = through([alarm(t) for t in range(50)], rule(gap=10))
    assert [(e.event, e.end) for e in events] == [
        ("opened", 0),
        ("open", 10),
        ("open", 20),
        ("open", 30),
        ("open", 40),
        ("closed", 49),
    ]


def test_only_the_frontier_closes() -> None:
    state = KeyState()
    take(state, [alarm(0)], rule(gap=10))
    assert advance("hot", ("k",), state, 10, rule(gap=10)) == Step((), changed=False)
    (closed,) = advance("hot", ("k",), state, 11, rule(gap=10)).events
    assert (closed.event, closed.severity, closed.labels) == ("closed", "critical", {"team": "north"})


def test_an_alarm_that_comes_again_after_its_episode_closed_opens_none() -> None:
    what, state = rule(gap=10, memory=100), KeyState()
    take(state, [alarm(0)], what)
    advance("hot", ("k",), state, 50, what)
    assert take(state, [alarm(0)], what) == Step((), new=0, changed=False)


def test_what_is_remembered_of_a_key_is_limited_and_so_is_what_a_batch_writes() -> None:
    state, records = KeyState(), dict[int | None, bytes | None]()
    most = CHUNK * (MOST_CHUNKS + 1)
    for start in range(0, most + 3 * CHUNK, 100):
        take(state, [alarm(t) for t in range(start, start + 100)], rule())
        before = dict(records)
        write(state, records)
        written = [len(record or b"") for number, record in records.items() if record != before.get(number)]
        assert sum(written) < 3 * CHUNK * 40
    assert most - CHUNK < len(state.alarm_ids) <= most
    found = restored(records)
    assert len(found.alarm_ids) == len(state.alarm_ids) and found.runs == state.runs
    assert take(found, [alarm(most), alarm(most + 10_000)], rule()).new == 1


def test_a_crash_between_the_records_of_a_batch_leaves_no_alarm_out() -> None:
    """Closed chunks are written before the runs: without these they don't count."""
    state, records = KeyState(), dict[int | None, bytes | None]()
    alarms = [alarm(t) for t in range(CHUNK + 10)]
    take(state, alarms[: CHUNK - 1], rule())
    write(state, records)
    take(state, alarms[CHUNK - 1 :], rule())
    ((number, chunk),) = state.alarm_ids.changes()
    records[number] = chunk
    found = restored(records)
    assert take(found, alarms, rule()).new == 11
    assert found.runs[0].alarms == len(alarms)


def test_the_record_of_an_older_version_is_read() -> None:
    run = {"start": 0, "end": 5, "alarms": 2, "row": {}, "episode": "e", "told": 5}
    old = {"runs": [run], "seen": {alarm(0).id[:ID_DIGITS]: 0, alarm(5).id[:ID_DIGITS]: 5}}
    state = restored({None: orjson.dumps(old)})
    assert take(state, [alarm(0), alarm(5), alarm(6)], rule()).new == 1
    assert state.runs[0].alarms == 3


def test_runs_in_the_order_of_an_older_version_are_found() -> None:
    """Older versions wrote a run last whenever it got an alarm."""
    runs: list[dict[str, Any]] = [
        {"start": t, "end": t, "alarms": 1, "row": {}, "episode": f"e{t}", "told": t} for t in (40, 0, 20)
    ]
    state = restored({None: orjson.dumps({"runs": runs, "open": {"number": 0, "latest": 40, "ids": []}})})
    events = take(state, [alarm(10)], rule(gap=10)).events
    assert [(e.event, e.episode) for e in events] == [("closed", "e20"), ("open", "e0")]
    assert [(run.start, run.end, run.alarms) for run in state.runs] == [(0, 20, 3), (40, 40, 1)]
    ended = advance("hot", ("k",), state, 51, rule(gap=10)).events
    assert [e.episode for e in ended] == ["e0", "e40"]


def test_rules_follow_the_plan() -> None:
    def definition(version: int, gap: int | None, interval: int) -> Definition:
        source = Input("a", "air", f"t{version}", "ts", (), None, interval)
        return Definition("hot", version, (source,), (), (TimeBound("a", "b", -7, 5),), None, (), gap=gap)

    plan = Plan(version=3, partitions=1, definitions=(definition(3, None, 4), definition(2, 100, 6)))
    found = rules_of(plan)["hot"]
    assert found.gap == DEFAULT_GAP + 8
    assert found.topics == {"t2", "t3"}, "an old definition's alarms still come"
    assert found.memory == 7 + 12

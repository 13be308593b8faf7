"""Silences: a sink hears of an episode's close exactly if it heard of the opening, and of nothing covered."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tamis.messaging.silences import Held, Record, Silence, covers, decode, encode
from tamis_alerts.core.silences import HeldOpenings

Log = list[tuple[int, dict[str, Any]]]  # events with the instants at which they come
History = list[tuple[int, list[Silence]]]  # the silences that there are from some instants on
Told = set[tuple[int, str, str]]  # instant, episode, event

END = 14
KEYS: list[list[Any]] = [["a", 1], ["b", 2]]


def event(kind: str = "opened", episode: str = "e", **more: Any) -> dict[str, Any]:
    facts = {"alert": "hot", "key": ["a", 1], "severity": "page", "labels": {"team": "ops"}, **more}
    return {"event": kind, "episode": episode, "start": 1, "end": 2, "alarms": 3, "row": {}, **facts}


def silence(start: int = 0, until: int = 10, **conditions: Any) -> Silence:
    return Silence(id="s", start=start, until=until, **conditions)


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({"alerts": ("hot", "dry")}, True),
        ({"alerts": ("dry",)}, False),
        ({"severities": ("page",)}, True),
        ({"severities": ("",)}, False),
        ({"labels": {"team": ("ops", "dev")}}, True),
        ({"labels": {"team": ("ops",), "site": ("x",)}}, False),
        ({"keys": (("b", 2), ("a", 1))}, True),
        ({"keys": (("a", "1"),)}, True),
        ({"keys": (("a",),)}, False),
        ({"keys": (("a", "1970-01-01T00:00:00.000001Z"),)}, True),
        ({"keys": (("a", "1970-01-01T01:00:00.000001+01:00"),)}, True),
        ({"keys": (("a", "1970-01-01T00:00:01Z"),)}, False),
        ({"alerts": ("hot",), "severities": ("info",)}, False),
    ],
)
def test_an_episode_has_to_meet_all_conditions(conditions: dict[str, Any], found: bool) -> None:
    assert covers(silence(**conditions), event(), 5) is found


def test_a_silence_begins_at_its_start_and_is_over_at_its_end() -> None:
    assert [covers(silence(3, 5), event(), now) for now in (2, 3, 4, 5)] == [False, True, True, False]


def test_records_are_read_as_they_were_written_and_later_members_are_ignored() -> None:
    records: list[Record] = [
        silence(keys=(("a", 1, None, True, 0.5),), labels={"team": ("ops",)}),
        Held(sink="pager", partition=1, offset=7, event=event(), closed=9, columns=("a",), row_times=("ts",)),
    ]
    assert [decode(one.record_key, encode(one)) for one in records] == records
    assert (
        decode(records[0].record_key, encode(records[0]).replace(b"{", b'{"colour":"red",', 1)) == records[0]
    )
    for wrong in (b"", b"[]", b'{"kind":"later"}', b'{"kind":"held"}'):
        with pytest.raises(ValueError, match=r"\w"):
            decode(b"silence/s", wrong)


@dataclass
class Sink:
    """A sink with its queue, as the service runs it: each step may be the last one before a crash.

    `kafka` has the records of `tamis.silences`, `committed` the number of events that are done.
    """

    log: list[dict[str, Any]]
    kafka: dict[bytes, bytes] = field(default_factory=dict)
    committed: int = 0
    told: list[tuple[int, str, str]] = field(default_factory=list)
    openings: HeldOpenings = field(default_factory=HeldOpenings)

    def restart(self) -> None:
        self.openings = HeldOpenings()
        for key, value in list(self.kafka.items()):
            held = decode(key, value)
            assert isinstance(held, Held)
            if held.closed is not None and held.closed < self.committed:
                del self.kafka[held.record_key]
            else:
                self.openings.hold(held)

    def put(self, held: Held) -> None:
        self.kafka[held.record_key] = encode(held)

    def remove(self, episode: str) -> None:
        held = self.openings.remove(episode)
        if held is not None:
            del self.kafka[held.record_key]

    def say(self, now: int, one: dict[str, Any]) -> None:
        self.told.append((now, one["episode"], one["event"]))

    def commit(self) -> None:
        self.committed += 1

    def take(self, silences: list[Silence], now: int, steps: int) -> bool:
        """Handle the next event; after so many steps the process ends. False if it ended."""
        offset, one = self.committed, self.log[self.committed]
        decision = self.openings.decide(one, silences, now)
        todo: list[Callable[[], None]] = []
        if decision == "tell":
            todo.append(lambda: self.say(now, one))
            if one["event"] == "opened":
                todo.append(lambda: self.remove(one["episode"]))
        elif decision == "hold":
            held = Held(sink="s", partition=0, offset=offset, event=one)
            todo += [lambda: self.put(held), lambda: self.openings.hold(held)]
        else:
            todo.append(lambda: self.put(self.openings.close(one["episode"], offset)))
        todo.append(self.commit)
        if decision == "skip":
            todo.append(lambda: self.remove(one["episode"]))
        for step in todo[:steps]:
            step()
        return steps >= len(todo)

    def release(self, silences: list[Silence], now: int, steps: int) -> bool:
        """Send what is due; after so many steps the process ends. False if it ended."""
        for held in list(self.openings.due(silences, now)):
            if steps > 0:
                self.say(now, held.event)
            if steps > 1:
                self.remove(held.episode)
            if steps < 2:
                return False
            steps -= 2
        return True


def oracle(log: Log, history: History) -> Told:
    """What the sink must hear, and when: looked up instant by instant, over all silences that there were."""

    def silenced(one: dict[str, Any], now: int) -> bool:
        known = [silences for since, silences in history if since <= now][-1]
        for other in known:
            time = now in range(other.start, other.until)
            alert = other.alerts is None or list(other.alerts).count(one["alert"]) > 0
            severity = other.severities is None or {one["severity"] or ""} & set(other.severities)
            team = "team" not in other.labels or one["labels"].get("team", "") in other.labels["team"]
            written = [[str(value) for value in key] for key in other.keys or ()]
            key = other.keys is None or [str(value) for value in one["key"]] in written
            if time and alert and severity and team and key:
                return True
        return False

    found: Told = set()
    for opened, one in log:
        if one["event"] == "closed":
            continue
        same = [(at, other) for at, other in log if other["episode"] == one["episode"]]
        closes = [at for at, other in same if other["event"] == "closed"]
        free = [now for now in range(opened, closes[0] if closes else END) if not silenced(one, now)]
        if free:
            found.add((free[0], one["episode"], "opened"))
            found |= {(at, one["episode"], "closed") for at in closes}
    return found


def case(seeded: random.Random) -> tuple[Log, History]:
    log: Log = []
    for number in range(6):
        opened, team = seeded.randrange(END - 1), seeded.choice([None, "ops", "lab"])
        facts = {
            "alert": seeded.choice(["hot", "dry"]),
            "severity": seeded.choice([None, "page", "info"]),
            "key": seeded.choice(KEYS),
            "labels": {} if team is None else {"team": team},
        }
        log.append((opened, event("opened", f"e{number}", **facts)))
        if seeded.random() < 0.7:
            log.append((seeded.randrange(opened + 1, END), event("closed", f"e{number}", **facts)))
    history: History = [(0, [])]
    for since in sorted(seeded.sample(range(END), 4)):
        kept = [one for one in history[-1][1] if seeded.random() < 0.6]
        start = seeded.randrange(END)
        conditions = {
            "alerts": seeded.choice([None, ("hot",), ("hot", "dry")]),
            "severities": seeded.choice([None, None, ("",), ("page", "info")]),
            "labels": seeded.choice([{}, {}, {"team": ("ops",)}, {"team": ("", "lab")}]),
            "keys": seeded.choice([None, None, (("a", "1"),)]),
        }
        history.append((since, [*kept, silence(start, start + seeded.randrange(1, END), **conditions)]))
    return sorted(log, key=lambda pair: pair[0]), history


def run(seeded: random.Random, crashes: float) -> tuple[Sink, Told]:
    log, history = case(seeded)
    sink = Sink([one for _, one in log])

    def steps() -> int:
        return seeded.randrange(4) if seeded.random() < crashes else 100

    for now in range(END):
        silences = [known for since, known in history if since <= now][-1]
        while sink.committed < len(log) and log[sink.committed][0] <= now:
            if not sink.take(silences, now, steps()):
                sink.restart()
        while not sink.release(silences, now, steps()):
            sink.restart()
    return sink, oracle(log, history)


def test_what_waits_is_counted_as_it_will_be_sent_with_the_silences_of_now() -> None:
    """The oracle empties the queue: nothing else happens meanwhile."""
    seeded, counts = random.Random(33), set()
    for _ in range(500):
        log, history = case(seeded)
        now, silences = seeded.randrange(END), history[-1][1]
        sink = Sink([one for _, one in log])
        for _ in range(seeded.randrange(len(log))):
            sink.take(seeded.choice(history)[1], now, 100)
        waiting = sink.log[sink.committed :]
        due = [held.event for held in sink.openings.due(silences, now)]
        # Held openings whose time has come are in the queue, too, before their closes.
        queue = [(one, None) for one in (*due, *waiting)]
        held = sink.openings.held_back(silences, now)
        assert held == len(sink.openings.by_episode) - len(due)
        foreseen = list(sink.openings.foresee(queue, silences, now))
        already = len(sink.told)
        sink.release(silences, now, 100)
        while sink.committed < len(log):
            sink.take(silences, now, 100)
        told = [(episode, event) for _, episode, event in sink.told[already:]]
        assert told == [
            (one["episode"], one["event"]) for (one, _), sent in zip(queue, foreseen, strict=True) if sent
        ]
        counts.add((len(queue), len(told), held))
    assert len(counts) > 30, "the cases differ"


def test_a_notification_that_is_being_sent_waits_whatever_is_silenced_meanwhile() -> None:
    opening, closing = event(), event("closed")
    covering = [silence()]
    assert list(HeldOpenings().foresee([(opening, None), (closing, None)], covering, 5)) == [False, False]
    assert list(HeldOpenings().foresee([(opening, "tell"), (closing, None)], covering, 5)) == [True, True]


def test_a_sink_hears_what_an_oracle_finds_instant_by_instant() -> None:
    seeded, kinds = random.Random(94), set()
    for _ in range(1_000):
        sink, wanted = run(seeded, 0)
        assert sorted(sink.told) == sorted(wanted)
        kinds.add((len(wanted), len(sink.openings.by_episode)))
    assert len(kinds) > 20, "the cases differ"


def test_crashes_between_any_two_steps_repeat_events_and_change_nothing_else() -> None:
    seeded, repeated = random.Random(18), 0
    for _ in range(1_000):
        sink, wanted = run(seeded, 0.4)
        assert set(sink.told) == wanted
        repeated += len(sink.told) - len(wanted)
        sink.restart()
        assert all(held.closed is None for held in sink.openings.by_episode.values())
    assert repeated, "crashes come between sending and committing"

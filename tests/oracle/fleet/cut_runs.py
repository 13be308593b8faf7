"""Random runs of one shard with window alerts: real cores of edge and joiner, crashes and changes of plans.

The value of the reading with offset i is 4^i, so that a sum says how often each reading was counted.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import orjson
from tests.fixtures.dict_state import DictState

from tamis.expressions.vectors import Vector
from tamis.messaging.topics import PLANS
from tamis.operators.windows import cut_policy
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.planning.incremental import plan_for
from tamis.planning.queries.definitions import definition_id
from tamis.planning.topic_readers import Reader
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

SECOND = 1_000_000
SHARD = "air:e/s"
STREAM = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, f BOOLEAN, w BIGINT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 10, max_ahead = 'unlimited');"""
MOST = 28  # readings, whose digits fit into 64 bits


class Window(NamedTuple):
    """A definition of the alert `alert`; slide and size are seconds."""

    alert: str
    slide: int
    size: int
    filtered: bool

    @property
    def sql(self) -> str:
        where = " WHERE f" if self.filtered else ""
        hop = f"HOP(air, ts, INTERVAL '{self.slide}' SECOND, INTERVAL '{self.size}' SECOND)"
        return (
            f"CREATE ALERT {self.alert} AS SELECT window_end, k, sum(w) AS total, max(w) AS top"
            f" FROM {hop}{where} GROUP BY window_end, k;"
        )

    def ends(self, time: int) -> list[int]:
        """The ends of the windows of a time."""
        slide, size = self.slide * SECOND, self.size * SECOND
        last = time // slide * slide
        return [start + size for start in range(last, time - size, -slide)]


WINDOWS = (
    *(Window("a", slide, size, filtered=False) for slide, size in ((4, 4), (6, 6))),
    *(Window("b", slide, size, filtered=False) for slide, size in ((2, 6), (5, 10))),
    *(Window("c", slide, size, filtered=True) for slide, size in ((5, 5), (3, 9))),
)


class Reading(NamedTuple):
    """One reading of the source."""

    time: int
    key: str
    passes: bool


@cache
def _catalog(windows: tuple[Window, ...]) -> Catalog:
    return catalog_of(STREAM + "".join(window.sql for window in windows))


@cache
def _decoded(document: bytes) -> Plan:
    return decode_plan(document)


class Registry:
    """Plans with changing alerts. `defined`: the window of each alert and version; `until`: when it was
    replaced; `dropped`: those that may stop anywhere. `partials`: services exchange partial aggregates.
    """

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.partials = r.random() < 0.7
        self.plans: list[bytes] = []
        self.defined: dict[tuple[str, int], Window] = {}
        self.until: dict[tuple[str, int], int] = {}
        self.dropped: set[tuple[str, int]] = set()
        self._current = {"a": (r.choice(WINDOWS[:2]), 1)}
        self._old: dict[tuple[str, int], Window] = {}
        self._numbers: Any = {}
        self._assigned: dict[str, Any] = {}
        self._plan()

    def change(self) -> None:
        """The next plan version."""
        kind, version = self.r.random(), len(self.plans) + 1
        if kind < 0.25:
            self.partials = True
        elif kind < 0.55:
            window = self.r.choice(WINDOWS)
            if (before := self._current.get(window.alert)) is not None:
                self._old[window.alert, before[1]] = before[0]
                self.until[window.alert, before[1]] = version
            self._current[window.alert] = window, version
        elif kind < 0.7 and len(self._current) > 1:
            alert = self.r.choice(list(self._current))
            self.dropped.add((alert, self._current.pop(alert)[1]))
            gone = [one for one in self._old if one[0] == alert]
            self.dropped.update(gone)
            self._old = {one: window for one, window in self._old.items() if one not in gone}
        self._plan()

    def _plan(self) -> None:
        version = len(self.plans) + 1
        catalog = _catalog(tuple(window for window, _ in self._current.values()))
        running = [(_catalog((window,)).alerts[alert], made) for (alert, made), window in self._old.items()]
        for alert, (window, made) in self._current.items():
            running.append((catalog.alerts[alert], made))
            self.defined[alert, made] = window
        names = [definition_id(alert.name, made) for alert, made in running]
        built = plan_for(
            version,
            catalog,
            [
                Reader(name, alert, made, self._assigned.get(name, {}))
                for name, (alert, made) in zip(names, running, strict=True)
            ],
            partitions=1,
            topic_numbers=self._numbers,
            outside={},
            retiring={definition_id(*one): self.until[one] for one in self._old},
            since={SHARD: 1},
            shard_streams={SHARD: "air"},
            derived_numbers={},
            partials=() if self.partials else None,
        )
        self._numbers = built.topic_numbers
        self._assigned |= built.assigned
        self.plans.append(encode_plan(built.plan))


# Weights of the steps.
ACTIONS = {
    "plan": 2,
    "obey": 3,
    "emit": 6,
    "read": 10,
    "commit": 6,
    "land": 8,
    "send": 12,
    "confirm": 3,
    "crash": 0.8,
    "stale": 0.4,
    "old": 4,
    "batch": 5,
}


class CutRuns:
    """One schedule. What happens in it is decided by the seed alone."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.registry = Registry(self.r)
        self.log = self._readings()
        self.available = 0
        self.newest = 0  # the plan that the edge has
        self.commit, self.run = Commit(), None  # type: Commit, ShardRun | None
        self.pending: tuple[Commit, int | None] | None = None
        self.taken_up: int | None = None  # the offset at which the run took up its plan
        # The versions of durable commits with these offsets; readings that were published as tuples count as
        # those of any version.
        self.begun: list[tuple[int, int]] = []
        self.as_tuples: set[int] = set()
        self.unconfirmed: list[Record] = []
        self.ends: dict[ShardRun, int] = {}  # where the source ended when its run asked
        self.stale: ShardRun | None = None  # of an earlier owner that doesn't know that the shard has moved
        self.topics: dict[str, list[bytes]] = defaultdict(list)
        self.taken: Counter[str] = Counter()
        self.state, self.batches = DictState({}), 0
        self.rows: dict[tuple[str, int, int, str], int] = {}
        self.seen: Counter[str] = Counter()

    def _readings(self) -> list[Reading]:
        r, time, log = self.r, 1_000 * SECOND, []
        for _ in range(r.randint(6, MOST)):
            time += r.choice((0, SECOND // 2, SECOND, 2 * SECOND, 3 * SECOND))
            log.append(Reading(time - r.randint(0, 2 * SECOND), r.choice("pq"), r.random() < 0.7))
        return log

    def play(self) -> list[str]:
        """What broke. In some runs a few rows are divided into parts."""
        with patch.object(cut_policy, "PART_BYTES", self.r.choice((cut_policy.PART_BYTES, 300))):
            return self._play()

    def _play(self) -> list[str]:
        weights = [weight * self.r.choice((0.3, 1, 1, 3)) for weight in ACTIONS.values()]
        for name in self.r.choices(list(ACTIONS), weights, k=150 + 10 * len(self.log)):
            getattr(self, f"a_{name}")()
        return self._heal() or self._judge()

    # ---- registry and source

    def a_plan(self) -> None:
        if len(self.registry.plans) < 6 and self.r.random() < 0.5:
            self.registry.change()

    def a_emit(self) -> None:
        self.available = min(len(self.log), self.available + self.r.choice((1, 2, 3)))

    # ---- edge

    @property
    def _plan(self) -> Plan | None:
        return _decoded(self.registry.plans[self.newest - 1]) if self.newest else None

    def a_obey(self) -> None:
        self.newest = min(self.newest + 1, len(self.registry.plans))
        self._obey()

    def _obey(self) -> None:
        plan = self._plan
        if plan is None or (self.run is None and plan.version < self.commit.form):
            return
        if self.run is None:
            run = self.run = ShardRun(SHARD, "air", self.commit, plan, now=1_000)
            self.taken_up = run.next_offset if run.version != self.commit.version else None
            if self.taken_up is not None and self.commit.cuts is None:
                # Tuples that are read again count under the new plan.
                self.as_tuples.update(range(self.commit.done, max(self.commit.read, run.next_offset)))
        elif plan.version > self.run.version and not self.run.rereading and self.run.ready(plan):
            self.run.obey(plan, 1_000)
            self.taken_up = self.run.next_offset

    def a_read(self) -> None:
        self._obey()
        if self.run is not None:
            self._read(self.run)

    def _read(self, run: ShardRun) -> None:
        if run.settling or run.ended:
            return
        fence = run.partials.fence
        if fence.asks_for_end():
            self.ends[run] = self.available
        if fence.asked and run.next_offset >= self.ends[run]:
            fence.source_read()
        first = run.next_offset
        readings = self.log[first : min(first + self.r.choice((1, 2, 5)), self.available)]
        if not readings:
            run.idle(1_000)
            return
        times = np.array([reading.time for reading in readings], np.int64)
        offsets = np.arange(first, first + len(readings))
        columns = {
            "k": Vector(np.array([reading.key for reading in readings], np.object_)),
            "ts": Vector(times),
            "f": Vector(np.array([reading.passes for reading in readings])),
            "w": Vector(np.array([4**offset for offset in offsets.tolist()], np.int64)),
        }
        run.take(Batch(columns, times, offsets, np.zeros(len(readings), np.int64)), 1_000)

    def a_commit(self) -> None:
        if self.run is None or self.pending is not None:
            return
        self.run.partials.full = self.r.random() < 0.15
        commit = self.run.commit()
        if commit is not None:
            self.pending = commit, self.taken_up

    def a_land(self) -> None:
        if self.run is None or self.pending is None:
            return
        if self.r.random() < 0.1:
            self.pending = None
            self.run.commit_failed()
            return
        self._land()
        self.run.committed(1_000)

    def _land(self) -> None:
        assert self.pending is not None
        (commit, taken_up), self.pending = self.pending, None
        assert Commit.from_metadata(commit.done, commit.to_metadata()) == commit
        self.commit = commit
        if taken_up is not None:
            self.begun.append((commit.version, taken_up))
            if commit.cuts is None:
                self.as_tuples.update(range(commit.done, taken_up))

    def a_send(self) -> None:
        for _ in range(self.r.choice((1, 1, 3))):
            if self.run is not None and self.run.out:
                record = self._publish(self.run)
                if self.r.random() < 0.8:
                    self.run.safe(record.token)
                else:
                    self.unconfirmed.append(record)

    def _publish(self, run: ShardRun) -> Record:
        record = run.out.popleft()
        self.topics[record.topic].append(record.value)
        document = orjson.loads(record.value)
        if "w" in document:
            self.as_tuples.add((document["w"].bit_length() - 1) // 2)
        kind = "tuple" if "w" in document else document["_"]["kind"]
        self.seen[f"old {kind}" if run is self.stale else kind] += 1
        self.seen["part"] += kind == "cut" and document["_"]["place"][1] > 0
        return record

    def a_confirm(self) -> None:
        if self.run is not None:
            self.run.safe(*(record.token for record in self.unconfirmed))
        self.unconfirmed = []

    def a_crash(self) -> None:
        if self.run is None:
            return
        while self.run.out and self.r.random() < 0.5:
            self._publish(self.run)
        if self.pending is not None and self.r.random() < 0.5:
            self._land()
        self._lose()
        self.seen["crash"] += 1

    def _lose(self) -> None:
        self.run, self.pending, self.unconfirmed = None, None, []
        if self.r.random() < 0.2:
            self.newest = self.r.randint(0, self.newest)  # an older plan is on the next one's disk

    def a_stale(self) -> None:
        """The shard moves to another edge, and this one doesn't know. Its commits are refused from now on."""
        if self.run is None or self.stale is not None:
            return
        if self.pending is not None and self.r.random() < 0.5:
            self._land()
            self.run.committed(1_000)
        self.stale = self.run
        self._lose()
        self.seen["stale"] += 1

    def a_old(self) -> None:
        """The earlier owner reads or sends, or learns that it is none."""
        if self.stale is None:
            return
        if self.r.random() < 0.05:
            self.stale = None
        elif self.r.random() < 0.5:
            self._read(self.stale)
        elif self.stale.out:
            record = self._publish(self.stale)
            self.stale.safe(record.token)

    # ---- joiner

    def a_batch(self, everything: bool = False) -> None:
        r = self.r
        sources = {PLANS: self.registry.plans, **self.topics}
        parts = {}
        for topic, values in sources.items():
            first = self.taken[topic]
            count = len(values) - first if everything else r.randint(0, len(values) - first)
            if count:
                at = np.arange(first, first + count)
                parts[topic] = [Records(topic, 0, values[first : first + count], at, np.zeros_like(at))]
                self.taken[topic] += count
        plans = parts.pop(PLANS, [])
        self.batches += 1
        group = Group.load(0, 1, self.state)
        records = [part for some in parts.values() for part in some]
        out = group.process(plans, records, self.state, now=self.batches, token=str(self.batches))
        assert not out.dead_letters
        for _, value in out.alarms:
            alarm = orjson.loads(value)
            row = alarm["row"]
            key = alarm["alert"], alarm["definition"], row["window_end"], row["k"]
            assert key not in self.rows, f"{key} is given twice"
            self.rows[key] = row["total"]

    # ---- the end

    def _heal(self) -> list[str]:
        """Let everything be read, sent and taken."""
        self.available = len(self.log)
        for _ in range(40):
            self.newest = len(self.registry.plans)
            for _ in range(6):
                self.a_read()
            run = self.run
            assert run is not None
            last = run.version == self.newest and not run.settling
            if last and run.next_offset >= len(self.log) and not run.ended:
                run.finish()
            self.a_commit()
            if self.pending is not None:
                self._land()
                run.committed(1_000)
            while run.out:
                run.safe(self._publish(run).token)
            self.a_confirm()
            self.a_batch(everything=True)
        assert self.run is not None
        done = self.run.ended and self.run.final_version == self.run.version
        return [] if done else [f"stuck at plan {self.run.version}, offset {self.run.next_offset}"]

    def _judge(self) -> list[str]:
        """Rules (a) and (c) of docs/cuts.md: a query counts once in each window all readings from the offset
        of its activation to that of its successor. No reading is late.
        """
        bad = []
        for (alert, version), window in self.registry.defined.items():
            first = self._begins(version)
            until = self.registry.until.get((alert, version))
            behind = self._begins(until) if until else len(self.log)
            expected: Counter[tuple[int, str, int]] = Counter()
            for offset, reading in enumerate(self.log[:behind]):
                if offset >= first and (reading.passes or not window.filtered):
                    expected.update((end, reading.key, offset) for end in window.ends(reading.time))
            counted: Counter[tuple[int, str, int]] = Counter()
            for (name, made, end, key), total in self.rows.items():
                if (name, made) == (alert, version):
                    digits = ((total >> 2 * offset) & 3 for offset in range(len(self.log)))
                    counted += Counter({(end, key, offset): times for offset, times in enumerate(digits)})
            self.seen["counted"] += sum(counted.values())
            dropped = (alert, version) in self.registry.dropped
            for one in expected.keys() | counted.keys():
                times, free = counted[one], one[2] in self.as_tuples
                wrong = times > 1 or (times > expected[one] and not free and not dropped)
                if wrong or (times < expected[one] and not free and not dropped):
                    bad.append(f"{alert}@{version} counts {one} {times} times in place of {expected[one]}")
        progress = orjson.loads(self.state.get("meta") or b"")["standing"].values()
        if sum(one.get("disordered", 0) for one in progress):
            bad.append("a cut doesn't follow the one before")
        return bad

    def _begins(self, version: int) -> int:
        return next((offset for begun, offset in self.begun if begun >= version), len(self.log))

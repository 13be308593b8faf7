"""A plan that is built from parts of any earlier plan equals the plan that is built from nothing.

Random queries of all kinds are created, replaced, paused and dropped, streams are created and dropped, and
the registry restarts. Each plan is built from the last plan, from an older one and from none.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from tests.oracle.fleet.plan_parts import in_order, part_of
from tests.oracle.random_cases import SEED, cases

from tamis.errors import TamisError
from tamis.messaging.topics import JOINER_PATTERN
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import partial_topics
from tamis.plan.parts import cut, joined, parts
from tamis.planning.incremental import Built, plan_for
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import recover

BLOCKS = 2
STEPS = 40
COLUMNS = (
    "k VARCHAR KEY, place VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN 0 AND 100), y DOUBLE, n INT"
)


class World:
    def __init__(self, seed: str) -> None:
        self.r = random.Random(seed)
        self.derived = 0  # plans in which an alert reads the topic of a derived stream
        self.aggregated: frozenset[str] = frozenset()  # the topics that ever had partial aggregates
        self.older: list[Built] = []
        self.planner = Planner(build=self.build)
        self.statements: dict[bytes, bytes] = {}
        self.registry = Registry(self.planner, State(2), None, 0, 0)
        self.perform(self.registry.begin(0))
        self.cheaper = self.joined = 0  # readers that send tuples for their bytes, or join what has partials
        self.sql(
            f"CREATE STREAM a ({COLUMNS}, WATERMARK FOR ts AS ts);"
            f"CREATE STREAM b ({COLUMNS}, WATERMARK FOR ts AS ts) WITH (keys = 1, rate = '1/s');"
        )
        self.sql(
            "CREATE STREAM e1 AS SELECT x, k, place, ts AS at FROM a WHERE x BETWEEN 20 AND 40;"
            "CREATE ALERT q1 AS SELECT k FROM a WHERE x BETWEEN 20 AND 35;"
        )

    def build(self, version: int, catalog: Any, sources: Any, *, before: Built | None, **given: Any) -> Built:
        built = plan_for(version, catalog, sources, before=before, **given)
        for other in (None, self.r.choice(self.older) if self.older else None):
            again = plan_for(version, catalog, sources, before=other, **given)
            assert again.plan == built.plan
            assert again.topic_numbers == built.topic_numbers
            assert again.choices == built.choices and again.outside == built.outside
            assert built.assigned.items() <= again.assigned.items() or other is not None
        read = {source.topic for definition in built.plan.definitions for source in definition.inputs}
        assert all(re.fullmatch(JOINER_PATTERN, topic) for topic in read)
        self.derived += any(topic.startswith("tamis.stream.e") for topic in read)
        if self.r.random() < 0.2:
            assert decode_plan(encode_plan(built.plan)) == built.plan
        self.older.append(built)
        assert built.parts is not None
        for known in built.parts.readers.values():
            for request in known.requests:
                self.cheaper += request.tuples_are_cheaper and request.groups is None
                self.joined += request.tuples_are_cheaper and request.groups is not None
        return built

    def perform(self, change: Any) -> None:
        for key, value in change.statements.items():
            if value is None:
                del self.statements[key]
            else:
                self.statements[key] = value
        if change.written is not None and self.r.random() < 0.2:
            written = change.written
            assert written.size == len(written.json) and decode_plan(written.json) == change.plan
            assert written.json == encode_plan(change.plan)
            for streams in ({"a"}, {"b"}, {"a", "b"}, {"nothing"}, None):
                assert decode_plan(cut(written.json, streams)) == part_of(change.plan, streams)
            found = parts(written.json)
            assert found == {name: cut(written.json, {name}) for name in found}
            for some in ("a", "b"), ("b", "a"), tuple(found):
                joint = decode_plan(joined({name: found[name] for name in some}))
                assert in_order(joint) == in_order(part_of(change.plan, set(some)))
        before = self.registry.plan
        self.registry.done(change, 0)
        self.aggregated |= partial_topics(before)
        after = {topic.name: topic for stream in self.registry.plan.streams for topic in stream.topics}
        for name in self.aggregated & after.keys():
            assert after[name].partials is not None, f"{name} went back to tuples"

    def sql(self, text: str) -> None:
        try:
            change = self.registry.apply(text, 0)[1]
        except TamisError:
            return  # a name that is taken, or in use, or not there
        self.perform(change)

    def filter(self, *sources: str) -> str:
        atoms = []
        for _ in range(self.r.choice((1, 1, 2))):
            of = self.r.choice(sources)
            low = self.r.randint(0, 90)
            atoms.append(
                self.r.choice(
                    (
                        f"{of}x BETWEEN {low} AND {low + self.r.choice((1, 10, 40))}",
                        f"{of}y > {low}",
                        f"{of}n IN (1, {self.r.randint(0, 5)})",
                        f"{of}x < {of}y",
                        f"{of}x + {of}y > {low}",
                    )
                )
            )
        return self.r.choice((" AND ", " OR ")).join(atoms)

    def region(self, width: int) -> str:
        """One of few filters, so that a narrow one often implies a wide one."""
        low = 20 * self.r.randint(0, 2)
        return f"x BETWEEN {low} AND {low + width}"

    def alert(self) -> None:
        r = self.r
        name, a, b = f"q{r.randint(1, 12)}", r.choice("ab"), r.choice("ab")
        keys = r.choice(("p.k = q.k", "p.k = q.k AND p.place = q.place"))
        select = r.choice(
            (
                f"SELECT k FROM {a} WHERE {self.filter('')}",
                f"SELECT k, y FROM a WHERE {self.region(10)} AND ({self.filter('')})",
                f"SELECT p.k FROM {a} p JOIN {b} q ON {keys} AND q.ts BETWEEN p.ts - INTERVAL '3' SECOND AND "
                f"p.ts + INTERVAL '2' SECOND WHERE p.x > q.x AND {self.filter('p.')}",
                f"SELECT t.k, count(*) AS c FROM TUMBLE({a}, ts, INTERVAL '3' SECOND) t WHERE "
                f"{self.filter('t.')} GROUP BY t.k, t.window_start HAVING count(*) > 2",
            )
        )
        self.sql(f"CREATE {r.choice(('', 'OR REPLACE '))}ALERT {name} AS {select};")

    def window(self) -> None:
        """For windows of a second tuples take fewer bytes, while a key has one each second."""
        name, size, least = self.r.randint(1, 4), self.r.choice((1, 60)), self.r.choice((10, 20))
        begin, options = "CREATE OR REPLACE", ""
        if self.r.random() < 0.2:
            # The topic must not go to a reader of tuples.
            begin, options = f"DROP ALERT w{name}; CREATE", self.r.choice(("", "WITH (edge = 'raw')"))
        self.sql(
            f"{begin} ALERT w{name} {options} AS SELECT t.k, max(t.x) AS m FROM "
            f"TUMBLE(b, ts, INTERVAL '{size}' SECOND) t WHERE t.x > {least} GROUP BY t.k, t.window_start;"
        )

    def several(self) -> None:
        """Alerts of one text come with one plan."""
        self.sql("".join(f"CREATE ALERT m{self.r.random()}".replace("0.", "") + " AS SELECT k FROM a WHERE "
                         f"{self.filter('')};" for _ in range(3)))  # fmt: skip

    def end(self) -> None:
        kind, name = self.r.choice(("DROP", "PAUSE", "RESUME")), self.r.choice(("q", "q", "w"))
        self.sql(f"{kind} ALERT {name}{self.r.randint(1, 12)};")

    def stream(self) -> None:
        self.sql(
            self.r.choice(
                (
                    f"CREATE STREAM c ({COLUMNS}, WATERMARK FOR ts AS ts);",
                    "CREATE STREAM d AS SELECT k, ts, x FROM a WHERE x > 30;",
                    f"CREATE STREAM e{self.r.randint(1, 3)} AS SELECT x, ts AS at, y AS z, k, n, place FROM "
                    f"a WHERE {self.region(12)};",
                    "CREATE STREAM f AS SELECT * FROM a;",
                    "DROP STREAM c;",
                    "DROP STREAM d;",
                    f"DROP STREAM e{self.r.randint(1, 3)};",
                )
            )
        )

    def rate(self) -> None:
        self.sql(f"ALTER STREAM b SET (rate = '{self.r.choice((1, 1, 50))}/s');")

    def ask(self) -> None:
        wanted = new_lease("a", self.filter(""), "", 60, self.registry.state.catalog)
        self.perform(self.registry.subscribe(wanted, 0)[1])

    def leave(self) -> None:
        """A consumer asks no more, and all others do."""
        leases = self.registry.state.leases
        if leases:
            gone = self.r.choice(list(leases))
            self.registry.seen.asked = dict.fromkeys(leases, 10**9)
            self.registry.seen.asked[gone] = -(10**9)
            change = self.registry.tick(0)
            if change is not None:
                self.perform(change)

    def restart(self) -> None:
        state = recover(dict(self.r.sample(list(self.statements.items()), len(self.statements))))
        assert state is not None
        plan = self.registry.plan
        self.registry = Registry(
            self.planner, state.draft(), state, plan.version, 0, partials=partial_topics(plan)
        )
        self.perform(self.registry.begin(0))

    def play(self) -> int:
        steps = (
            *(self.alert, self.alert, self.several, self.end, self.ask, self.ask, self.leave),
            *(self.stream, self.stream, self.stream, self.window, self.window, self.rate),
        )
        for _ in range(STEPS):
            self.restart() if self.r.random() < 0.03 else self.r.choice(steps)()
        return max(len(stream.topics) for stream in self.registry.plan.streams)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_parts_of_plans_before_make_no_difference(block: int) -> None:
    most = derived = cheaper = joined = 0
    for case in range(cases(1 / 4000 / BLOCKS)):
        seed = f"{SEED} {block} {case}"
        try:
            world = World(seed)
            most = max(most, world.play())
            derived += world.derived
            cheaper, joined = cheaper + world.cheaper, joined + world.joined
        except AssertionError as error:
            raise AssertionError(f"seed {seed!r}: {error}") from error
    assert most > 1 and derived > 0 and cheaper > 0 and joined > 0

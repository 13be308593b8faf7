"""The registry: the real core; its changes are performed one effect at a time, and it crashes anywhere."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import orjson
from tests.model.kafka import decode_once

from tamis.certificates.certify import Certificate, Unproven, certify
from tamis.declarations.streams import StreamDef
from tamis.messaging.records import Ack, Frontier
from tamis.plan.model import partial_topics
from tamis.planning.incremental import Built, plan_for
from tamis.query.model import Catalog, Statement
from tamis.query.parse import parse
from tamis.sharing.selectivity import BoxUnion
from tamis.sharing.topic_choice import Candidate, CandidateTopics
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State
from tamis_registry.core.state.records import recover

if TYPE_CHECKING:
    from tests.model.world import World

After = Callable[[int], None]


@functools.cache
def _certified(conditions: Any, alias: str, streams: Any, filters: Any) -> Certificate | Unproven:
    return certify(conditions, alias, dict(streams), dict(filters))


def certify_once(
    conditions: Any, alias: str, streams: Any, filters: Any, *, heuristic: bool, work: object = None
) -> Certificate | Unproven:
    """`certify`, remembered from one schedule to the next: a proof depends on columns, not on times."""
    assert not heuristic
    columns = tuple((name, StreamDef("", s.columns, s.time, 0)) for name, s in streams.items())
    return _certified(conditions, alias, columns, tuple(filters.items()))


def parse_once(
    text: str, catalog: Catalog, change: Callable[[Catalog, Statement], None], file: None = None
) -> list[Statement]:
    """The registry's `parse`, remembered from one schedule to the next: what a text means depends on what was
    said before it.
    """
    before = (catalog.streams, catalog.derived, catalog.functions, catalog.alerts, catalog.tables)
    said = tuple(made.sql for some in before for made in some.values())
    key = text, said, frozenset(catalog.paused)
    if key not in _PARSED:
        _PARSED[key] = tuple(parse(text, catalog, change))
    return list(_PARSED[key])


_PARSED: dict[Hashable, tuple[Statement, ...]] = {}


def _scattering(r: random.Random) -> Callable[..., Built]:
    """Plans whose new readers go to any topic there is, or to one of their own: what is promised must not
    rest on where a reader is served.
    """

    def anywhere(topics: CandidateTopics, need: BoxUnion, _: bool) -> tuple[Candidate | None, float, float]:
        return r.choice([None, *topics.candidates]), need.share, 2 * need.share

    def build(*args: Any, **named: Any) -> Built:
        with patch.object(CandidateTopics, "choose", anywhere):
            return plan_for(*args, **named)

    return build


class Office:
    """The registry's process and what its topics hold of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.statements: dict[bytes, bytes] = {}
        # For alerts alone one topic of a stream and key costs least: there would never be more.
        build = _scattering(world.places) if world.places else plan_for
        self._planner = Planner(build=build)
        self.registry: Registry | None = None
        self.effects: list[Callable[[], None]] = []
        self._acks = self._frontiers = 0

    # ---- life

    def start(self) -> None:
        """A new process knows what the topics hold."""
        world = self.world
        before = recover(self.statements)
        state = before.draft() if before else State(world.inputs.partitions)
        greatest = max((orjson.loads(log[-1])["version"] for log in world.plans if log), default=0)
        newest = [log[-1] for log in world.plans if log and orjson.loads(log[-1])["version"] == greatest]
        partials = partial_topics(decode_once(newest[0])) if newest else ()
        self.registry = Registry(self._planner, state, before, greatest, world.now, partials=partials)
        for ack in world.acks:
            self.registry.hear(ack, None)
        for frontier in world.frontiers:
            self.registry.follow(frontier)
        self._acks, self._frontiers = len(world.acks), len(world.frontiers)
        self._perform(self.registry.begin(world.now))
        world.say("registry starts, greatest", greatest)

    def crash(self) -> None:
        """Whatever is not written yet never will be."""
        self.registry, self.effects = None, []
        self.world.seen["registry crashes"] += 1
        self.world.say("registry crashes")

    # ---- steps

    def hear(self) -> None:
        """Take what the fleet has said."""
        if self.registry is None or self.effects:
            return
        acks: list[Ack] = self.world.acks[self._acks :]
        frontiers: list[Frontier] = self.world.frontiers[self._frontiers :]
        for ack in acks:
            self.registry.hear(ack, self.world.now)
        for frontier in frontiers:
            self.registry.follow(frontier)
        self._acks, self._frontiers = len(self.world.acks), len(self.world.frontiers)

    def effect(self) -> None:
        """Perform the next effect of a change."""
        if self.effects:
            self.effects.pop(0)()

    def tick(self) -> bool:
        """Do what is due by itself; whether there was anything."""
        assert self.registry is not None
        change = self.registry.tick(self.world.now)
        if change is not None:
            after = functools.partial(self.world.begin_anew, change.anew) if change.anew else None
            self._perform(change, after)
        return change is not None

    def say(self, text: str, after: After) -> None:
        """Apply a text; `after` is told the version of its plan once it is durable."""
        assert self.registry is not None
        _, change = self.registry.apply(text, self.world.now)
        self._perform(change, after)

    @property
    def next_version(self) -> int:
        """The version of the next plan."""
        assert self.registry is not None
        return self.registry.state.version + 1

    def _judge_listing(self, state: State) -> None:
        """Rule `back_with_reading`: a shard that was declared gone is listed again only with a reading. A
        file has ended instead.
        """
        world = self.world
        for name, shard in state.shards.items():
            if shard.gone == state.version and shard.reason == "silent":
                world.silent.setdefault(name, world.durable[name].commit.decided)
            elif shard.since == state.version and name in world.silent:
                world.seen["back after silence"] += 1
                source, decided = world.shards[name], world.silent.pop(name)
                if source.available <= decided and source.kind != "file":
                    world.broken.append(("LISTED", f"{name} is listed again without a reading"))

    def _perform(self, change: Change, after: After | None = None) -> None:
        world, registry = self.world, self.registry
        assert registry is not None
        self._judge_listing(change.state)

        def write_statements() -> None:
            for key, value in change.statements.items():
                if value is None:
                    del self.statements[key]
                else:
                    self.statements[key] = value
            world.say("registry:", *change.why)
            if after is not None and change.plan is not None:
                after(change.state.version)

        writes: list[Callable[[], None]] = []
        if change.plan is not None and change.written is not None:
            parts, document = range(world.inputs.partitions), change.written.json
            writes += [functools.partial(world.write_plan, p, change.plan, document) for p in parts]
            writes += [
                functools.partial(world.write_final, final.topic, p, final.shard, final.version)
                for final in change.finals
                for p in parts
            ]
            world.r.shuffle(writes)
        self.effects = [write_statements, functools.partial(world.create, change.topics), *writes]
        self.effects.append(lambda: registry.done(change, world.now))

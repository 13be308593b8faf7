"""The registry, and what it was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.model.kafka import decode_once
from tests.model.representatives.queries import Asked
from tests.model.representatives.shard import Shard

from tamis.errors import TamisError
from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.records import Frontier
from tamis.plan.model import Plan
from tamis.planning import proof_results
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

_PROVEN: dict[tuple[str, ...], proof_results.WorkedOut] = {}


def _decide(made: AlertDef | DerivedDef, catalog: Catalog) -> Verdict:
    """The verdict, remembered from one schedule to the next: proofs take longer than all else."""
    # The name of the alert doesn't matter.
    said = made.sql.partition(f" {made.name}")[2], *(stream.sql for stream in catalog.streams.values())
    if said not in _PROVEN:
        _PROVEN[said] = proof_results.work_out(made, catalog)
    proof_results.learn(made, catalog, _PROVEN[said])
    return _PROVEN[said].verdict


@dataclass(eq=False)
class Defined:
    """A definition of an alert. `until`: the plan version that replaced it. `ended`: it was dropped or
    paused, so nothing is promised any more.
    """

    alert: str
    version: int
    asked: Asked
    until: int | None = None
    ended: bool = False


class Office:
    """The registry's process with the topic of plans. `current`: the definitions in force, by alert."""

    def __init__(self, declarations: str, partitions: int, now: int) -> None:
        self._registry = Registry(Planner(_decide), State(partitions), None, 0, now)
        self.plans: list[bytes] = []
        self.every: list[Defined] = []
        self.current: dict[str, Defined] = {}
        self.paused: dict[str, Asked] = {}
        self._perform(self._registry.begin(now), now)
        self.say(declarations, now)

    @property
    def plan(self) -> Plan:
        """The newest plan as others read it."""
        return decode_once(self.plans[-1])

    def plan_of(self, version: int) -> Plan | None:
        """A plan by its version."""
        return next((plan for plan in map(decode_once, self.plans) if plan.version == version), None)

    def _perform(self, change: Change, now: int) -> None:
        if change.plan is not None and change.written is not None:
            self.plans.append(change.written.json)
        assert not change.finals
        self._registry.done(change, now)

    def say(self, text: str, now: int) -> bool:
        """Apply statements; False if they are refused."""
        try:
            _, change = self._registry.apply(text, now)
        except TamisError:
            return False
        self._perform(change, now)
        return True

    def hear(self, shards: Iterable[Shard], frontiers: list[Frontier], now: int) -> None:
        """Take what edges and joiner say."""
        for shard in shards:
            listed = bool(self.plans) and shard.name in self.plan.since
            if ack := shard.ack(self.plan.version if listed else 0, now):
                self._registry.hear(ack, now)
        for frontier in frontiers:
            self._registry.follow(frontier)
        frontiers.clear()

    def hear_of_loss(self, now: int) -> None:
        """The joiner has found that records were deleted before it read them."""
        self._registry.take_heartbeat(JOINER, Heartbeat(time=now, host="j", pid=1, lost=now), now)

    def tick(self, now: int) -> bool:
        """Do what is due by itself; True if there was anything."""
        change = self._registry.tick(now)
        if change is not None:
            self._perform(change, now)
        return change is not None

    # ---- alerts

    def define(self, alert: str, asked: Asked, now: int) -> None:
        """CREATE, or CREATE OR REPLACE."""
        before = self.current.get(alert)
        again = before is not None or alert in self.paused
        if not self.say(asked.statement(alert, again=again), now):
            return
        if alert in self.paused:
            self.paused[alert] = asked  # it stays paused
            return
        version = max(one.version for one in self.plan.standing if one.alert == alert)
        if before is not None and before.version == version:
            return  # the same query: nothing has changed
        if before is not None:
            before.until = version
        self.current[alert] = made = Defined(alert, version, asked)
        self.every.append(made)

    def end(self, alert: str, now: int, *, pause: bool) -> None:
        """DROP or PAUSE an alert in force."""
        known = self.current.pop(alert)
        assert self.say(f"{'PAUSE' if pause else 'DROP'} ALERT {alert};", now)
        if pause:
            self.paused[alert] = known.asked
        for one in self.every:
            one.ended |= one.alert == alert

    def resume(self, alert: str, now: int) -> None:
        """RESUME a paused alert."""
        asked = self.paused.pop(alert)
        assert self.say(f"RESUME ALERT {alert};", now)
        self.current[alert] = made = Defined(alert, self.plan.version, asked)
        self.every.append(made)

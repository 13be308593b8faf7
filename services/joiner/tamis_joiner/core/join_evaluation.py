"""Evaluation of the joins of a plan over the stored tuples of one output partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tamis.expressions.python_functions import FunctionError
from tamis.operators.time_join.decided_rows import Passed, waits
from tamis.operators.time_join.existence import existing_rows, tests_existence
from tamis.operators.time_join.temporal_join import combinations
from tamis_joiner.core.alarms import KeyValue, join_alarms
from tamis_joiner.core.compiled_plan import CompiledJoin, CompiledPlan
from tamis_joiner.core.frontiers import Completeness, Frontiers
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME
from tamis_joiner.core.shed_spans import ShedSpans
from tamis_joiner.core.tuples.stored_tuples import distinct
from tamis_joiner.core.tuples.tuple_store import TupleStore

Alarms = Iterator[tuple[str, list[KeyValue]]]


def evaluate_joins(
    compiled: CompiledPlan,
    store: TupleStore,
    changed: Collection[str],
    *,
    shed: ShedSpans,
    missing: Collection[str],
    errors: dict[str, str],
) -> Alarms:
    """The alarms of each join that the new tuples complete, with the join's alert. `changed`: the topics that
    got new tuples. Joins with EXISTS or NOT EXISTS are left to `evaluate_existence`.

    Alerts in `missing` call functions that aren't installed. They are always left out, even if no tuples
    join, so that they never seem to work. An alert whose function fails gets an entry in `errors`, which is
    removed when the alert is evaluated without an error. The other alerts are evaluated as usual.
    """
    retiring = compiled.plan.retiring
    for join in compiled.joins:
        if tests_existence(join.definition) or join.topics.isdisjoint(changed):
            continue
        if join.definition.alert in missing or not join.topics <= store.tuples.keys():
            continue
        if not _has_new(join, store):
            continue

        def alarms(join: CompiledJoin = join) -> list[KeyValue]:
            return _alarms(join, store, compiled.plan.version, retiring.get(join.name), shed)

        yield from _evaluated(join.definition.alert, alarms, errors)


@dataclass(frozen=True)
class Moved:
    """Frontiers of topics at the evaluation before (BEGINNING_OF_TIME for topics without one) and now."""

    before: Mapping[str, int]
    now: Frontiers
    completeness: Completeness

    def passed(self, join: CompiledJoin) -> Passed:
        """The frontiers of a join's inputs."""
        inputs = join.definition.inputs
        return Passed(
            {one.alias: self.before.get(one.topic, BEGINNING_OF_TIME) for one in inputs},
            {one.alias: self.now.of(one.topic) for one in inputs},
            {one.alias: self.completeness.of(join.name, one.topic, self.now) for one in inputs},
        )


def evaluate_existence(
    compiled: CompiledPlan,
    store: TupleStore,
    moved: Moved,
    *,
    shed: ShedSpans,
    missing: Collection[str],
    errors: dict[str, str],
    late: Counter[str],
) -> Alarms:
    """The alarms of joins with EXISTS or NOT EXISTS that new tuples complete, or that frontiers decide.

    Other parameters as of `evaluate_joins`. `late` gets, by alert, the number of rows that were not given
    because a tuple was late.
    """
    for join in compiled.joins:
        alert = join.definition.alert
        if not tests_existence(join.definition) or alert in missing:
            continue
        passed = moved.passed(join)
        if not _has_new(join, store) and not _moved(join, passed):
            continue

        def alarms(join: CompiledJoin = join, passed: Passed = passed) -> list[KeyValue]:
            return _existing(join, store, compiled, passed, shed=shed, late=late)

        yield from _evaluated(alert, alarms, errors)


def _evaluated(alert: str, alarms: Callable[[], list[KeyValue]], errors: dict[str, str]) -> Alarms:
    try:
        found = alarms()
    except FunctionError as error:
        errors[alert] = str(error)
        return
    errors.pop(alert, None)
    yield alert, found


def _has_new(join: CompiledJoin, store: TupleStore) -> bool:
    held = (pair for pair in join.inputs if pair[0] in store.tuples)
    return any(store.filters(topic).has_new(row) for topic, row in held)


def _moved(join: CompiledJoin, passed: Passed) -> bool:
    awaited = waits(join.definition)
    return any(passed.before[wait.alias] < passed.now[wait.alias] for wait in awaited)


def _alarms(
    join: CompiledJoin, store: TupleStore, version: int, until: int | None, shed: ShedSpans
) -> list[KeyValue]:
    definition = join.definition
    by_alias = {source.alias: store.tuples[source.topic] for source in definition.inputs}
    filters = [(store.filters(topic), row) for topic, row in join.inputs]
    # The tuples of a combination have the same key, and one of them is new.
    keys = distinct(np.concatenate([passing.new_keys(row) for passing, row in filters]))
    passed = [passing.rows(row, keys) for passing, row in filters]
    return [
        alarm
        for rows in combinations(definition, by_alias, passed, until=until)
        for alarm in join_alarms(definition, version, by_alias, rows, shed)
    ]


def _existing(
    join: CompiledJoin,
    store: TupleStore,
    compiled: CompiledPlan,
    passed: Passed,
    *,
    shed: ShedSpans,
    late: Counter[str],
) -> list[KeyValue]:
    definition = join.definition
    by_alias = {source.alias: store.held(source.topic) for source in definition.inputs}
    masks = [
        store.filters(topic).mask(row) if topic in store.tuples else np.zeros(0, np.bool_)
        for topic, row in join.inputs
    ]
    until = compiled.plan.retiring.get(join.name)
    found = existing_rows(definition, by_alias, passed, masks, until=until)
    late[definition.alert] += found.late
    return join_alarms(definition, compiled.plan.version, by_alias, found.rows, shed)

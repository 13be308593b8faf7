"""Evaluation of the joins of a plan over the stored tuples of one output partition."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tamis.evaluation.temporal_join import combinations
from tamis.expressions.python_functions import FunctionError
from tamis_joiner.core.alarms.alarm_record import KeyValue
from tamis_joiner.core.alarms.join_alarms import join_alarms
from tamis_joiner.core.alarms.shed_spans import ShedSpans
from tamis_joiner.core.plan.compiled_join import CompiledJoin
from tamis_joiner.core.plan.compiled_plan import CompiledPlan
from tamis_joiner.core.tuples.tuple_store import TupleStore


def evaluate_joins(
    compiled: CompiledPlan,
    store: TupleStore,
    changed: Collection[str],
    *,
    shed: ShedSpans,
    missing: Collection[str],
    errors: dict[str, str],
) -> Iterator[tuple[str, list[KeyValue]]]:
    """The alarms of each join that the new tuples complete, with the join's alert. `changed`: the topics that
    got new tuples.

    Alerts in `missing` call functions that aren't installed. They are always left out, even if no tuples
    join, so that they never seem to work. An alert whose function fails gets an entry in `errors`, which is
    removed when the alert is evaluated without an error. The other alerts are evaluated as usual.
    """
    retiring = compiled.plan.retiring
    for join in compiled.joins:
        alert = join.definition.alert
        waits = alert in missing or join.topics.isdisjoint(changed) or not join.topics <= store.tuples.keys()
        if waits or not _has_new(join, store):
            continue
        try:
            alarms = _alarms(join, store, compiled.plan.version, retiring.get(join.name), shed)
        except FunctionError as error:
            errors[alert] = str(error)
            continue
        errors.pop(alert, None)
        yield alert, alarms


def _has_new(join: CompiledJoin, store: TupleStore) -> bool:
    return any(store.filters(topic).has_new(row) for topic, row in join.inputs)


def _alarms(
    join: CompiledJoin, store: TupleStore, version: int, until: int | None, shed: ShedSpans
) -> list[KeyValue]:
    definition = join.definition
    by_alias = {source.alias: store.tuples[source.topic] for source in definition.inputs}
    masks = [store.filters(topic).mask(row) for topic, row in join.inputs]
    return [
        alarm
        for rows in combinations(definition, by_alias, masks, until=until)
        for alarm in join_alarms(definition, version, by_alias, rows, shed)
    ]

"""Steps of the registry: plans with other queries, shards or forms of topics, and time that begins anew."""

from __future__ import annotations

from tests.model.cuts.fleet import Fleet
from tests.model.cuts.terms import INF, Plan, Query, Record, Shard


def change_plan(fleet: Fleet) -> None:
    """Write a new plan, sometimes equal to the last."""
    r, plan = fleet.r, fleet.plans[-1]
    if fleet.changes >= 6 or r.random() > fleet.pace:
        return
    fleet.changes += 1
    version, queries, chance = plan.version + 1, dict(plan.queries), r.random()
    current = [query for query, until in queries.items() if until == INF]
    new = plan._replace(version=version, queries=queries, listed=dict(plan.listed))
    if fleet.future and not plan.epoch and chance < 0.3:
        queries = {fleet.new_query(query.name, query.topic, version): INF for query in current}
        fleet.dropped |= set(fleet.every_query) - set(queries)
        new = new._replace(queries=queries, epoch=version)
    elif fleet.raw_first and r.random() < 0.5:
        new = _change_form(fleet, new)
    elif chance < 0.4 and current:
        query = r.choice(current)
        queries[query] = version
        queries[fleet.new_query(query.name, query.topic, version)] = INF
    elif chance < 0.5 and len(current) < 4:
        topic = r.randrange(fleet.topics)
        queries[fleet.new_query(f"q{len(fleet.every_query)}", topic, version)] = INF
    elif chance < 0.56 and len(current) > 1:
        _drop(fleet, r.choice(current), queries)
    elif chance < 0.65 and len(plan.listed) > 1 and not fleet.gone:
        _declare_gone(fleet, r.choice(list(plan.listed)), new)
    elif chance < 0.73 and fleet.gone:
        list_again(fleet, new)
    elif chance < 0.97:
        new = _change_form(fleet, new)
    fleet.add_plan(new)


def _change_form(fleet: Fleet, new: Plan) -> Plan:
    """A topic has partial aggregates in place of raw tuples, or the other way round."""
    fleet.seen["topics changed"] += 1
    return new._replace(partial=new.partial ^ {fleet.r.randrange(fleet.topics)})


def _drop(fleet: Fleet, dropped: Query, queries: dict[Query, float]) -> None:
    """All versions of a query end at once."""
    for query in [query for query in queries if query.name == dropped.name]:
        del queries[query]
        fleet.dropped.add(query)


def _declare_gone(fleet: Fleet, shard: Shard, new: Plan) -> None:
    """A shard leaves the frontier."""
    fleet.gone.append(shard)
    del new.listed[shard]
    for topic, partition in fleet.logs:
        fleet.append(partition, Record("final", shard, topic, new.version, new.version, new.epoch))
    fleet.seen["gone"] += 1


def list_again(fleet: Fleet, new: Plan) -> None:
    """All shards that were gone are back."""
    for shard in fleet.gone:
        new.listed[shard] = new.version
    fleet.gone = []

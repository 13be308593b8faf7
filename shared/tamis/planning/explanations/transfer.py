"""Records that edges send of a source: partial aggregates with the bound on the link, or readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tamis.bounded.memory import undeclared
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Column, Expr
from tamis.expressions.sql_text import to_sql
from tamis.operators.aggregates.accumulators import Measure
from tamis.operators.windows.partials import Partial, partials
from tamis.operators.windows.shared_panes import expression_of
from tamis.plan.model import PartialAggregation, Plan, Representation, TopicPlan
from tamis.plan.nodes import Grouping
from tamis.planning.link.bound import PARTITIONS, Amount, LinkBound, of_queries
from tamis.planning.link.cost import LinkCost
from tamis.planning.link.placement import partial_aggregation
from tamis.planning.plan_trees.words import representatives as kept_by
from tamis.planning.queries.standing_queries import is_standing, judged
from tamis.query.model import AlertDef, Catalog, WindowGroupBy
from tamis.sharing.topic_assignment import MOST_PARTIAL

# Alerts that share a topic, in a document and for people.
_MOST_NAMED = 10
_MEASURES: dict[Measure, str] = {
    "count": "count",
    "total": "sum",
    "squares": "sum of squares",
    "least": "least value",
    "greatest": "greatest value",
}


@dataclass(frozen=True)
class Transfer:
    """The form in which edges send a source. `reason`: why readings are sent one by one. `represented`: what
    edges keep of a source of which they send representatives. Both are empty for partial aggregates, of which
    `rows` says what they are, and `bound` how many. `undeclared`: the declarations that
    the bound lacks, for people. `topic`: its name in a fleet. `alerts`: all that share the topic; `alert`:
    the one of them that is explained.
    """

    reason: str = ""
    represented: Representation | None = None
    rows: str = ""
    bound: LinkBound | None = None
    undeclared: str = ""
    partitions: int = PARTITIONS
    topic: str = ""
    alerts: tuple[str, ...] = ()
    alert: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON object."""
        topic = {"topic": self.topic} if self.topic else {}
        names, count = self._others()
        others = {"others": names, "others_count": count} if count else {}
        where = {"text": list(self.lines()), **topic, **others}
        if self.reason:
            return {"form": "readings", **where}
        if self.represented is not None:
            return {"form": "representatives", **where}
        bound = {} if self.bound is None else {**self.bound.document(), "partitions": self.partitions}
        return {"form": "partial aggregates", **where, **bound}

    def lines(self) -> Iterator[str]:
        """Sentences for people."""
        if self.reason:
            yield f"sent to Kafka: readings one by one, since {self.reason}"
            return
        if self.represented is not None:
            yield from _representatives(self.represented)
            return
        yield f"sent to Kafka: partial aggregates, {self.rows}"
        yield from self._place()
        if self.bound is None:
            return
        bound = self.bound
        if bound.most.rows == math.inf:
            cuts = f"a shard sends them about {_number(bound.expected_cuts)} times a minute"
            lacking = f": {self.undeclared}" if self.undeclared else ""
            yield f"{cuts}; nothing limits the rows{lacking}"
            return
        instead = "" if bound.readings == math.inf else f", in place of up to {bound.readings:,} readings"
        partitions = f"{self.partitions} partition{'' if self.partitions == 1 else 's'}"
        yield (
            f"a shard sends about {_amount(bound.expected)} a minute, at most {_amount(bound.most)}"
            f" ({partitions}){instead}; a late reading adds at most one of each"
        )
        if bound.memory < math.inf:
            yield f"memory at the edge: up to {_bytes(int(bound.memory))} for {bound.open_rows:,} open rows"

    def _place(self) -> Iterator[str]:
        """The topic, and the alerts that share it; nothing for an alert alone outside a fleet."""
        names, count = self._others()
        if more := count - len(names):
            names.append(f"{more:,} more")
        if names:
            alerts = f"alert{'' if len(names) == 1 else 's'} {_listed(names)}"
            ends = "a pane ends at each boundary of the windows of any of them"
            where = f"in topic {self.topic}," if self.topic else "in a topic"
            yield f"{where} shared with {alerts}: {ends}"
        elif self.topic:
            yield f"in topic {self.topic}"

    def _others(self) -> tuple[list[str], int]:
        """The first of the other alerts that share the topic, and the number of all of them."""
        others = (name for name in self.alerts if name != self.alert)
        return list(islice(others, _MOST_NAMED)), max(len(self.alerts) - 1, 0)


def _representatives(found: Representation) -> Iterator[str]:
    yield f"sent to Kafka: readings that change what an edge keeps of their shard, {kept_by(found.covers)}"
    most = f"{found.most:,} reading{'' if found.most == 1 else 's'}"
    if all(cover.value is None for cover in found.covers):
        yield f"a shard keeps and sends at most {most}, and those again after a restart of its edge"
    else:
        yield (
            f"a shard keeps at most {most}; of n readings in random order it sends about {found.most:,} *"
            f" (ln(n / {found.most:,}) + 0.6), of readings that are always better all, and it begins again"
            " after a restart of its edge"
        )


def transfer(alert: AlertDef, catalog: Catalog, stream: str) -> Transfer | None:
    """The form in which edges send a stream of an accepted alert; None for a join by time, of which its
    omission says what is sent. `catalog`: that of the definitions that it reads.
    """
    if not is_standing(alert, catalog):
        return None
    found = judged(alert, catalog)
    if stream in found.represented:
        return Transfer(represented=found.represented[stream])
    partials_ = partial_aggregation(alert, found.node, found.lower, 1)
    query = alert.query
    if isinstance(found.lower, str):
        return Transfer(reason=found.lower)
    if found.cost is not None and found.cost.tuples_are_cheaper:
        return Transfer(reason=_cheaper(found.cost))
    assert partials_ is not None
    assert isinstance(query, WindowGroupBy)
    (feed,) = found.layout.feeds
    return _partial_aggregates(
        partials_, [query], catalog, feed.stream, keyed=bool(feed.partition_key), partitions=PARTITIONS
    )


def _cheaper(cost: LinkCost) -> str:
    readings, aggregates = _bytes(int(cost.tuples)), _bytes(int(cost.partials))
    return f"they take fewer bytes: about {readings} a minute, and partial aggregates {aggregates}"


def topic_transfer(
    plan: Plan,
    topic: TopicPlan,
    stream: StreamDef,
    readers: Callable[[str], AlertDef | None],
    catalog: Catalog,
    *,
    partitions: int = PARTITIONS,
) -> Transfer:
    """The form in which edges send a topic of a plan whose readers can have partial aggregates. `readers`:
    the alert of a query ("alert@version").
    """
    if topic.partials is None:
        return Transfer(_tuples_reason(plan, topic, stream), topic=topic.name)
    in_force = tuple(grid for grid in topic.partials.grids if grid.serves(plan.version))
    sent = replace(topic.partials, grids=in_force)
    alerts = [readers(grid.query) for grid in in_force]
    queries = [one.query if one and isinstance(one.query, WindowGroupBy) else None for one in alerts]
    made = _partial_aggregates(
        sent, queries, catalog, stream, keyed=bool(topic.partition_key), partitions=partitions
    )
    names = sorted({grid.query.rpartition("@")[0] for grid in in_force})
    return replace(made, topic=topic.name, alerts=tuple(names))


def _tuples_reason(plan: Plan, topic: TopicPlan, stream: StreamDef) -> str:
    """Why a topic has readings although a reader of it could have partial aggregates."""
    topics = [one for planned in plan.streams if planned.name == stream.name for one in planned.topics]
    if sum(one.partials is not None for one in topics) >= MOST_PARTIAL:
        return f"stream {stream.shown_name} has {MOST_PARTIAL} topics of partial aggregates, and no more"
    return (
        f"topic {topic.name} has readings, from before edges and joiner could exchange partial aggregates, or"
        " for other readers that need them, or for which they take fewer bytes"
    )


def _partial_aggregates(
    sent: PartialAggregation,
    queries: Sequence[WindowGroupBy | None],
    catalog: Catalog,
    stream: StreamDef,
    *,
    keyed: bool,
    partitions: int,
) -> Transfer:
    bound = of_queries(sent, queries, catalog, keyed=keyed, partitions=partitions)
    known = bound is None or bound.most.rows < math.inf
    # Whether a time is ahead of the clock doesn't matter here.
    lacking = None if known else undeclared(replace(stream, max_ahead=0))
    return Transfer(rows=rows_text(sent), bound=bound, undeclared=lacking or "", partitions=partitions)


def rows_text(sent: PartialAggregation) -> str:
    """The rows of a topic, for people."""
    grouping = sent.grouping
    slides = [seconds(slide) for slide in sorted({grid.slide for grid in sent.grids})]
    panes = f"pane of {slides[0]}" if len(slides) == 1 else f"pane between multiples of {_listed(slides)}"
    by = [to_sql(expression_of(column, grouping.computed), qualify=False) for column in grouping.by]
    each = ", ".join(by) + f" and {panes}" if by else panes
    return f"for each {each} a row with {', '.join(_contents(grouping))}"


def _contents(grouping: Grouping) -> Iterator[str]:
    yield "the count of readings"
    for partial in partials(grouping.aggregates)[1:]:
        yield from _content(partial, grouping)


def _content(partial: Partial, grouping: Grouping) -> Iterator[str]:
    def sql(column: Column | None) -> str:
        expr: Expr | None = None if column is None else expression_of(column, grouping.computed)
        return "" if expr is None else to_sql(expr, qualify=False)

    value = sql(partial.column)
    if partial.order is not None:
        yield f"{value} at the {'greatest' if partial.greatest else 'least'} {sql(partial.order)}"
    elif partial.each:
        yield f"each value of {value} with its count"
    else:
        yield f"{_listed([_MEASURES[one] for one in partial.measures])} of {value}"


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _listed(["count", "sum", "least value"]), _listed(["count"])
    ('count, sum and least value', 'count')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _amount(amount: Amount) -> str:
    records, rows = (_number(one) for one in (amount.records, amount.rows))
    return f"{records} records with {rows} rows"


def _number(number: float) -> str:
    """A number with a digit after the point if it is small.

    >>> _number(1.14), _number(12_345.6), _number(3)
    ('1.1', '12,346', '3')
    """
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:,.1f}"


def _bytes(size: int) -> str:
    """Bytes with a unit.

    >>> _bytes(2_000), _bytes(3_400_000)
    ('2 kB', '3.4 MB')
    """
    return f"{size / 1e6:.3g} MB" if size >= 1_000_000 else f"{size / 1e3:.3g} kB"

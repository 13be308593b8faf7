"""Rows of static relations that one conjunction can use, and what they say of its values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tamis.difference_bounds import Closure
from tamis.expressions.nodes import Expr
from tamis.operators.application_time.arrivals import Arrival, TimedQuery
from tamis.operators.tuple_values import Numbers, numbers, passing
from tamis.plan.conjunction import Conjunction
from tamis.recordings.typed import Recording

# So many combinations of rows of static relations are tried.
MOST_TRIED = 200


@dataclass(frozen=True)
class UsableRows:
    """The rows of a static relation that an alternative can use: their places, and the values of
    its nodes.
    """

    places: list[int]
    values: Mapping[int, Numbers]


def with_tables(
    query: Conjunction,
    closure: Closure,
    conditions: Sequence[Sequence[tuple[Expr, bool]]],
    *,
    codes: Mapping[str, int],
    arrivals: Mapping[str, tuple[str | None, tuple[int, int] | None]],
    relations: Mapping[str, Recording],
) -> tuple[TimedQuery, Mapping[int, UsableRows]] | None:
    """A conjunction with the limits of its static relations, and their rows by occurrence; None if it
    contradicts these. `conditions`: of each occurrence. `arrivals`: event time and rate of each stream.
    """
    closure = closure.copy()
    rows: dict[int, UsableRows] = {}
    values: dict[int, tuple[int, ...]] = {}
    found = []
    for occurrence, name in enumerate(query.streams):
        relation = relations.get(name)
        if relation is None:
            named, rate = arrivals[name]
            time = next((n for n in query.own(occurrence) if query.nodes[n - 1].column == named), 0)
            found.append(Arrival(time, rate=rate))
            continue
        alias = query.aliases[occurrence]
        keep = passing(conditions[occurrence], alias, relation.columns, len(relation))
        places = [int(place) for place in keep.nonzero()[0]]
        if not places:
            return None
        found.append(Arrival(rows=len(places)))
        own = {}
        for node in query.own(occurrence):
            whole = numbers(relation.columns[query.nodes[node - 1].column], codes)
            own[node] = [whole[place] for place in places]
            known = tuple(sorted({int(v) for v in own[node] if v is not None}))
            if query.nodes[node - 1].nullable:
                continue
            values[node] = known
            if query.nodes[node - 1].kind in ("whole", "time") and not (
                closure.add(node, 0, known[-1]) and closure.add(0, node, -known[0])
            ):
                return None
        rows[occurrence] = UsableRows(places, own)
    if not _compatible(closure, rows):
        return None
    return TimedQuery(query, closure, tuple(found), values), rows


def _compatible(closure: Closure, rows: Mapping[int, UsableRows]) -> bool:
    """True if rows of the static relations can be in one result together. Also True if there are too many
    rows to try.
    """
    if math.prod(len(one.places) for one in rows.values()) > MOST_TRIED:
        return True
    for chosen in itertools.product(*(range(len(one.places)) for one in rows.values())):
        whole = closure.copy()
        picked = [
            (node, own[at])
            for one, at in zip(rows.values(), chosen, strict=True)
            for node, own in one.values.items()
        ]
        if all(value is None or whole.fix(node, int(value)) for node, value in picked):
            return True
    return False

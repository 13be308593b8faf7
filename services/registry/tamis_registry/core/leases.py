"""Leases: subscriptions of consumers outside the fleet.

A consumer requests a lease for a predicate. The lease counts as a query until it expires.

A lease over a raw stream is a reader of one of its shared topics. A lease over a derived stream reads the
stream's own topic, which always has all of its tuples.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Literal as Word

from tamis.errors import InputError, RefusedError
from tamis.expressions.nodes import Expr, Literal, Type
from tamis.expressions.sql_text import to_sql
from tamis.predicates.predicate import Predicate
from tamis.query.condition import read_condition
from tamis.query.model import Catalog, NestedQuery
from tamis.sharing.topic_plans import Subscription
from tamis.wording.names import suggest
from tamis_registry.core.errors import MissingError, lists
from tamis_registry.core.shards.fleet_reports import FleetReports
from tamis_registry.core.state.model import Lease, State

# Each is an entry of a plan.
MOST = 10_000
# Characters of a predicate, and clauses once it is multiplied out.
LONGEST = 4_000
MOST_CLAUSES = 200
SECONDS = 300
LEAST_SECONDS, MOST_SECONDS = 10, 86_400

SECOND = 1_000_000


def new_lease(stream: str, predicate: str, consumer: str, seconds: int, catalog: Catalog) -> Lease:
    """The requested lease, with version 0. The same stream, predicate and consumer give the same id.

    Raises MissingError for an unknown stream, SqlErrors for mistakes in the predicate, and InputError and
    RefusedError for a predicate that is beyond the limits or never true.
    """
    if catalog.raw_stream(stream) is None and stream not in catalog.derived:
        known = [*catalog.streams, *catalog.derived]
        hint = suggest(stream, known, lists("streams"))
        raise MissingError(f"there is no stream '{stream}'", hint=hint)
    derived = catalog.derived.get(stream)
    if derived is not None and derived.inlined:
        rows = derived.aggregates or isinstance(derived.query, NestedQuery)
        what = "has rows of aggregates" if rows else "is a join"
        raise RefusedError(
            f"stream '{stream}' {what}, and has no topic of its own",
            where="stream",
            hint="create an alert that reads it, and follow its rows",
        )
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InputError(
            f"a lease of {seconds} s", where="lease", hint=f"ask for {LEAST_SECONDS} to {MOST_SECONDS} s"
        )
    if stream in catalog.streams and catalog.streams[stream].time is None:
        raise RefusedError(
            f"stream '{stream}' has no event time, so a lease can't begin at an event time",
            where="stream",
            hint="declare it with WATERMARK FOR",
        )
    filter_ = _filter(predicate, stream, catalog)
    text = "" if filter_ is None else to_sql(filter_, qualify=False)
    digest = hashlib.sha256("\0".join((stream, text, consumer)).encode()).hexdigest()[:16]
    lease = Lease(digest, stream, text, consumer, seconds, 0)
    return understood(lease, catalog)


def understood(lease: Lease, catalog: Catalog) -> Lease:
    """A lease with its parsed predicate, as planning needs it. Raises the same errors as `new_lease`."""
    if lease.stream not in catalog.streams:
        return lease
    filter_ = _filter(lease.predicate, lease.stream, catalog)
    meaning = Subscription(lease.reader_id, lease.stream, filter_, lease.version)
    return replace(lease, subscription=meaning)


def take(draft: State, lease: Lease, n: int) -> tuple[Lease, Word["new", "changed", "known"]]:
    """Add a lease, or set the term of an existing one. Raises RefusedError if there are too many."""
    known = draft.leases.get(lease.id)
    if known is not None and known.seconds == lease.seconds:
        return known, "known"
    if known is not None:
        draft.leases[lease.id] = replace(known, seconds=lease.seconds)
        return draft.leases[lease.id], "changed"
    if len(draft.leases) >= MOST:
        raise RefusedError(
            f"there are {MOST} leases already", where="lease", hint="wait until some have expired"
        )
    meaning = lease.subscription
    draft.leases[lease.id] = replace(
        lease, version=n, subscription=None if meaning is None else replace(meaning, version=n)
    )
    return draft.leases[lease.id], "new"


def end(draft: State, lease: str) -> Lease:
    """Remove a lease. Raises MissingError if there is none."""
    if lease not in draft.leases:
        raise MissingError(
            f"there is no lease '{lease}'",
            hint="it may have expired; `tamis get streams NAME --json` (GET /v1/streams/NAME) lists those of"
            " a stream",
        )
    return draft.leases.pop(lease)


def expired(state: State, seen: FleetReports, now: int) -> list[Lease]:
    """The leases that nobody has renewed within their term, not counting times when the registry did
    not run.
    """
    return [lease for lease in state.leases.values() if left(lease, seen, now) <= 0]


def left(lease: Lease, seen: FleetReports, now: int) -> int:
    """Microseconds until the lease expires."""
    asked = max(seen.asked.get(lease.id, seen.floor), seen.floor)
    return asked + lease.seconds * SECOND - now


def _filter(predicate: str, stream: str, catalog: Catalog) -> Expr | None:
    if not predicate.strip():
        return None
    if len(predicate) > LONGEST:
        raise InputError(
            f"a predicate of {len(predicate)} characters",
            where="predicate",
            hint=f"write at most {LONGEST} characters; several leases can share the work",
        )
    filter_ = read_condition(predicate, _types(stream, catalog))
    try:
        found = Predicate.of(filter_, MOST_CLAUSES)
    except RefusedError as error:
        if "clauses" not in error.what:
            return filter_  # functions and arithmetic are evaluated as they stand
        raise RefusedError(error.what, where="predicate", hint=error.hint) from None
    if found.never:
        raise RefusedError(
            "the predicate is never true",
            where="predicate",
            hint="remove conditions that contradict each other",
        )
    return None if found.always else filter_


def _types(stream: str, catalog: Catalog) -> dict[str, Type]:
    if stream in catalog.streams:
        return {column.name: column.type for column in catalog.streams[stream].columns}
    outputs = catalog.derived[stream].query.select
    return {
        output.name: output.expr.type
        for output in outputs
        if not isinstance(output.expr, Literal) or output.expr.value is not None
    }

"""Batches of the joiner: interrupted ones are repeated with the same plans and records."""

from __future__ import annotations

import random

from tests.model.cuts.fleet import Fleet, Place
from tests.model.cuts.joiner import Joiner
from tests.model.cuts.terms import Plan, Record


def batch(fleet: Fleet, place: Place | None = None) -> None:
    """A joiner takes a batch of plans and records, and may crash in it."""
    r = fleet.r
    place = place or r.choice(list(fleet.joiners))
    joiner = fleet.joiners[place]
    if place not in fleet.batches:
        plans = len(fleet.plans) - joiner.plans_read
        records = len(fleet.logs[place]) - joiner.records_read
        some = r.choice((0, plans, r.randint(0, plans))), r.choice((records, r.randint(0, records)))
        fleet.batches[place] = *((plans, records) if fleet.calm else some), r.random()
    plans, records, order = fleet.batches[place]
    crashes = not fleet.calm and r.random() < 0.15
    work = joiner.copy() if crashes else joiner
    new_plans = fleet.plans[joiner.plans_read :][:plans]
    new_records = fleet.logs[place][joiner.records_read :][:records]
    for one in _mixed(new_plans, new_records, order, between=fleet.plans_between):
        if isinstance(one, Plan):
            work.obey(one)
        else:
            work.arrive(one)
    _give_rows(fleet, place, work, all_of_them=not crashes)
    if not crashes:
        joiner.plans_read += plans
        joiner.records_read += records
        del fleet.batches[place]
    elif not fleet.on("one_checkpoint"):  # the state was stored, the offsets were not
        work.plans_read, work.records_read = joiner.plans_read, joiner.records_read
        work.taken = joiner.taken
        fleet.joiners[place] = work
    fleet.say("joiner", place, "crashes in" if crashes else "", "batch", plans, records, work.frontier)


def _mixed(plans: list[Plan], records: list[Record], order: float, *, between: bool) -> list[Plan | Record]:
    """Plans ahead of the records, or anywhere between them."""
    if not between:
        return [*plans, *records]
    key = random.Random(order)
    mixed: list[Plan | Record] = [*plans, *records]
    ranks = sorted(key.random() for _ in plans) + sorted(key.random() for _ in records)
    return [mixed[at] for at in sorted(range(len(mixed)), key=ranks.__getitem__)]


def _give_rows(fleet: Fleet, place: Place, joiner: Joiner, *, all_of_them: bool) -> None:
    """Write the rows of a batch, or the first of them. A repeated batch must give equal ones."""
    rows, joiner.rows = joiner.rows, []
    for key, readings in rows if all_of_them else rows[: fleet.r.randint(0, len(rows))]:
        if fleet.rows.setdefault((place, key), readings) != readings:
            fleet.changed_rows.append(key)

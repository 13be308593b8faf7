"""The entries of a topic after random changes of its readers, against those that a plain reading of the rules
gives for the readers that are left; and what thousands of filters let pass, against the exact measure.

Filters are intervals of one attribute, so that whether one lies in another is told by comparing ends.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from tests.oracle.brackets import SEED, cases

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.planning import entries as module
from tamis.planning import traffic
from tamis.planning.entries import Entries, Place, Reader
from tamis.planning.omission import Omission
from tamis.planning.plan import Entry, Input, Sides
from tamis.planning.points import POINTS
from tamis.planning.traffic import Footprint

X, Y = (Column("", name, Type.DOUBLE) for name in "xy")
GRID = 6


@dataclass(frozen=True, eq=False)
class Asked:
    """A reader that keeps x within `ends` (None: all)."""

    ends: tuple[int, int] | None
    value: Expr | None
    interval: int
    sides: Sides
    max_delay: int | None
    place: Place

    def reader(self) -> Reader:
        filter_: Expr | None = None
        if self.ends is not None:
            parts = tuple(
                Call(op, (X, Literal(float(end), Type.DOUBLE)), Type.BOOLEAN)
                for op, end in zip((">=", "<"), self.ends, strict=True)
            )
            filter_ = Call("and", parts, Type.BOOLEAN)
        omission = Omission(
            "",
            self.interval,
            ("k",),
            self.value,
            self.sides,
            None,
            filter_,
            filter_,
            "",
        )
        return Reader(
            Input("", "s", "t", "ts", ("k",), filter_, self.interval), omission, self.place[0], self.max_delay
        )


def asked(r: random.Random, made: int) -> Asked:
    low, high = sorted(r.sample(range(GRID), 2))
    ends = None if r.random() < 0.05 else (low, high)
    interval = r.choice((0, 0, 5, 9))
    return Asked(
        ends,
        r.choice((X, Y)) if interval else None,
        interval,
        r.choice(("both", "above", "below")) if interval else "both",
        r.choice((None, 3, 7)) if interval else None,
        (made, r.choice("pqrs") + str(r.randint(0, 10**9)), ""),
    )


def inside(one: Asked, other: Asked) -> bool:
    if other.ends is None:
        return True
    return one.ends is not None and other.ends[0] <= one.ends[0] and one.ends[1] <= other.ends[1]


def plainly(readers: list[Asked]) -> list[tuple[object, ...]]:
    """Filter, value, interval, sides, delay and the version served of each entry, in order."""
    groups: dict[object, list[Asked]] = {}
    for one in readers:
        groups.setdefault((one.ends, one.value), []).append(one)
    whole = [group for group in groups.values() if group[0].interval == 0]
    widest: list[list[Asked]] = []
    for group in whole:
        if len(widest) < module.MOST_COMPARED and not any(inside(group[0], wide[0]) for wide in widest):
            widest = [wide for wide in widest if not inside(wide[0], group[0])] + [group]
    served: dict[int, list[Asked]] = {}
    for group in groups.values():
        by = next((wide for wide in widest if inside(group[0], wide[0])), group)
        served.setdefault(id(by), []).extend(group)
    return [
        (
            group[0].ends,
            group[0].value,
            min(one.interval for one in group),
            group[0].sides if len({one.sides for one in group}) == 1 else "both",
            min((one.max_delay for one in group if one.max_delay is not None), default=None),
            max(one.place[0] for one in served[id(group)]),
        )
        for group in groups.values()
        if id(group) in served
    ]


def told(entry: Entry) -> tuple[object, ...]:
    ends = None
    if isinstance(entry.filter, Call):
        ends = tuple(int(part.args[1].value) for part in entry.filter.args)  # type: ignore[union-attr, arg-type]
    return ends, entry.value, entry.interval, entry.sides, entry.max_delay, entry.serves


@pytest.mark.parametrize("most", [2, 100])
def test_entries_follow_from_the_readers_alone(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COMPARED", most)
    changes = 0
    for case in range(cases(1 / 160)):
        r = random.Random(f"{SEED} {most} {case}")
        found, present = Entries(), dict[Asked, Reader]()
        for made in range(1, 30):
            # Few at a time, so that what was there is taken up; some are from long ago.
            leave = r.sample(list(present), min(len(present), r.choice((0, 1, 1, 2))))
            come = sorted(
                (asked(r, r.choice((made, made, r.randint(1, made)))) for _ in range(r.choice((0, 1, 1, 3)))),
                key=lambda one: one.place,
            )
            new = {one: one.reader() for one in come}
            found = found.changed(
                [(one.place, present.pop(one)) for one in leave], [(o.place, new[o]) for o in come]
            )
            present |= new
            changes += len(leave) + len(come) > 0
            ordered = sorted(present, key=lambda one: one.place)
            assert list(map(told, found.kept)) == plainly(ordered), f"seed {SEED} {most} {case}"
    assert changes > case


# Four deviations of as many points at random, where half of them are held.
ERROR = 4 * 0.5 / POINTS**0.5


def footprint(boxes: list[np.ndarray], dimensions: int) -> Footprint:
    ends = np.array(boxes, np.float64).reshape(len(boxes), 2, dimensions)
    return Footprint.of(ends[:, 0], ends[:, 1])


def test_what_many_let_pass_does_not_depend_on_how_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 0
    for case in range(cases(1 / 1200)):
        random_ = np.random.default_rng(random.Random(f"{SEED} {case}").getrandbits(64))
        dimensions = int(random_.integers(0, 4))
        width = random_.uniform(0.05, 0.6)
        boxes: list[np.ndarray] = []
        found = footprint(boxes, dimensions)
        for _ in range(8):
            at = int(random_.integers(0, len(boxes) + 1))
            gone = int(random_.integers(0, 1 + min(40, len(boxes) - at)))
            first = random_.uniform(0, 1, (int(random_.integers(0, 90)), dimensions))
            new = [np.stack([low, np.minimum(low + width, 1.0)]) for low in first]
            parts = [footprint(new[:5], dimensions), footprint(new[5:], dimensions)]
            found = found.changed(at, at + gone, parts)
            boxes[at : at + gone] = new
            anew = footprint(boxes, dimensions)
            assert np.array_equal(found.lower, anew.lower) and np.array_equal(found.upper, anew.upper)
            assert found.share == anew.share, f"seed {SEED} {case}"
        if found.hits is not None:
            many += 1
            with monkeypatch.context() as exactly:
                exactly.setattr(traffic, "MOST_EXACT", 10**9)
                exact = traffic.volume(found.lower, found.upper)
            assert found.share == pytest.approx(exact, abs=ERROR), f"seed {SEED} {case}"
            assert traffic.volume(found.lower, found.upper) == pytest.approx(exact, abs=ERROR)
    assert many > 0

"""Entries and box unions after random changes, against a computation from the readers that are left.

Entries are compared with a plain reading of the rules, and the volume of thousands of boxes with the exact
volume.

Filters are intervals of one attribute, so that whether one lies in another is told by comparing ends.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.plan.model import Entry, Input, Sides
from tamis.plan.omission import Omission
from tamis.sharing import entries as module
from tamis.sharing import selectivity
from tamis.sharing.entries import Entries, ReaderInput, SortKey
from tamis.sharing.selectivity import POINTS, BoxUnion

X, Y = (Column("", name, Type.DOUBLE) for name in "xy")
GRID = 6


@dataclass(frozen=True, eq=False)
class Case:
    """A reader that keeps x within `ends` (None: all)."""

    ends: tuple[int, int] | None
    value: Expr | None
    interval: int
    sides: Sides
    max_delay: int | None
    sort_key: SortKey

    def reader(self) -> ReaderInput:
        filter_: Expr | None = None
        if self.ends is not None:
            parts = tuple(
                Call(op, (X, Literal(float(end), Type.DOUBLE)), Type.BOOLEAN)
                for op, end in zip((">=", "<"), self.ends, strict=True)
            )
            filter_ = Call("and", parts, Type.BOOLEAN)
        omission = replace(
            Omission.none("", ("k",), filter_, ""),
            interval=self.interval,
            value=self.value,
            sides=self.sides,
        )
        return ReaderInput(
            Input("", "s", "t", "ts", ("k",), filter_, self.interval),
            omission,
            self.sort_key[0],
            self.max_delay,
        )


def asked(r: random.Random, made: int) -> Case:
    low, high = sorted(r.sample(range(GRID), 2))
    ends = None if r.random() < 0.05 else (low, high)
    interval = r.choice((0, 0, 5, 9))
    return Case(
        ends,
        r.choice((X, Y)) if interval else None,
        interval,
        r.choice(("both", "above", "below")) if interval else "both",
        r.choice((None, 3, 7)) if interval else None,
        (made, r.choice("pqrs") + str(r.randint(0, 10**9)), ""),
    )


def inside(one: Case, other: Case) -> bool:
    if other.ends is None:
        return True
    return one.ends is not None and other.ends[0] <= one.ends[0] and one.ends[1] <= other.ends[1]


def plainly(readers: list[Case]) -> list[tuple[object, ...]]:
    """Filter, value, interval, sides, delay and the version served of each entry, in order."""
    groups: dict[object, list[Case]] = {}
    for one in readers:
        groups.setdefault((one.ends, one.value), []).append(one)
    whole = [group for group in groups.values() if group[0].interval == 0]
    widest: list[list[Case]] = []
    for group in whole:
        if len(widest) < module.MOST_COMPARED and not any(inside(group[0], wide[0]) for wide in widest):
            widest = [wide for wide in widest if not inside(wide[0], group[0])] + [group]
    served: dict[int, list[Case]] = {}
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
            max(one.sort_key[0] for one in served[id(group)]),
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
        found, present = Entries(), dict[Case, ReaderInput]()
        for made in range(1, 30):
            # Few at a time, so that what was there is taken up; some are from long ago.
            leave = r.sample(list(present), min(len(present), r.choice((0, 1, 1, 2))))
            come = sorted(
                (asked(r, r.choice((made, made, r.randint(1, made)))) for _ in range(r.choice((0, 1, 1, 3)))),
                key=lambda one: one.sort_key,
            )
            new = {one: one.reader() for one in come}
            found = found.changed(
                [(one.sort_key, present.pop(one)) for one in leave], [(o.sort_key, new[o]) for o in come]
            )
            present |= new
            changes += len(leave) + len(come) > 0
            ordered = sorted(present, key=lambda one: one.sort_key)
            assert list(map(told, found.kept)) == plainly(ordered), f"seed {SEED} {most} {case}"
    assert changes > case


# Four deviations of as many points at random, where half of them are held.
ERROR = 4 * 0.5 / POINTS**0.5


def union_of(boxes: list[np.ndarray], dimensions: int) -> BoxUnion:
    ends = np.array(boxes, np.float64).reshape(len(boxes), 2, dimensions)
    return BoxUnion.of(ends[:, 0], ends[:, 1])


def test_what_many_let_pass_does_not_depend_on_how_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 0
    for case in range(cases(1 / 1200)):
        random_ = np.random.default_rng(random.Random(f"{SEED} {case}").getrandbits(64))
        dimensions = int(random_.integers(0, 4))
        width = random_.uniform(0.05, 0.6)
        boxes: list[np.ndarray] = []
        found = union_of(boxes, dimensions)
        for _ in range(8):
            at = int(random_.integers(0, len(boxes) + 1))
            gone = int(random_.integers(0, 1 + min(40, len(boxes) - at)))
            first = random_.uniform(0, 1, (int(random_.integers(0, 90)), dimensions))
            new = [np.stack([low, np.minimum(low + width, 1.0)]) for low in first]
            parts = [union_of(new[:5], dimensions), union_of(new[5:], dimensions)]
            found = found.replaced(at, at + gone, parts)
            boxes[at : at + gone] = new
            anew = union_of(boxes, dimensions)
            assert np.array_equal(found.lower, anew.lower) and np.array_equal(found.upper, anew.upper)
            assert found.share == anew.share, f"seed {SEED} {case}"
        if found.hits is not None:
            many += 1
            with monkeypatch.context() as exactly:
                exactly.setattr(selectivity, "MOST_EXACT", 10**9)
                exact = selectivity.volume(found.lower, found.upper)
            assert found.share == pytest.approx(exact, abs=ERROR), f"seed {SEED} {case}"
            assert selectivity.volume(found.lower, found.upper) == pytest.approx(exact, abs=ERROR)
    assert many > 0

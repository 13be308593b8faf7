"""The panes that an edge has open: sums are exact in any order, and what a cut takes is forgotten."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import orjson
import pytest

from tamis.declarations.aggregates import Aggregate
from tamis.expressions.exact.sums import SCALE, of_doubles
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import NumberedTexts, Vector
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import partials
from tamis.operators.windows.slots import kernels
from tamis.plan.nodes import Grouping
from tamis.recordings.flat_json.columns import FlatDecoder

K = Column("", "k", Type.VARCHAR)
X, B, V = Column("", "x", Type.DOUBLE), Column("", "b", Type.BIGINT), Column("", "v", Type.VARCHAR)
EDGES = (5e-324, -5e-324, 0.0, -0.0, 1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308)
LARGE = (2**63 - 1, -(2**63), 0, 1, -1, 2**32, -(2**32), 2**32 - 1)


def grouping(*calls: tuple[str, Column | None], by: tuple[Column, ...] = (K,)) -> Grouping:
    return Grouping(by, tuple(Aggregate(name, column, False, Type.DOUBLE) for name, column in calls), ())


def add(panes: OpenPanes, starts: Sequence[int], **columns: Sequence[Any]) -> None:
    kinds = {"k": Type.VARCHAR, "x": Type.DOUBLE, "b": Type.BIGINT, "v": Type.VARCHAR}
    taken = {("", name): Vector.from_list(values, kinds[name]) for name, values in columns.items()}
    panes.add(np.array(starts, np.int64), taken, len(starts))


def groups(rows: PaneRows) -> list[tuple[Any, ...]]:
    return list(zip(rows.panes.tolist(), *(vector.to_list() for vector in rows.groups), strict=True))


def number(r: random.Random) -> float:
    if r.random() < 0.2:
        return r.choice(EDGES)
    return r.uniform(-1, 1) * 10.0 ** r.randint(*r.choice(((-320, 307), (-3, 3), (-3, 3))))


@pytest.mark.parametrize("most", [1 << 28, 7])
def test_sums_and_sums_of_squares_are_exact(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST", most)
    r = random.Random(1)
    for _ in range(60):
        panes = OpenPanes(grouping(("var_pop", X), ("var_pop", B)))
        readings = [
            (r.randrange(3), r.choice("pq"), number(r), r.choice((r.choice(LARGE), r.randint(-9, 9))))
            for _ in range(r.randrange(1, 80))
        ]
        at = 0
        while at < len(readings):
            batch = readings[at : at + r.randint(1, 5)]
            at += len(batch)
            starts, k, x, b = zip(*batch, strict=True)
            add(panes, starts, k=k, x=x, b=b)
        rows = panes.take()
        _, of_x, of_b = rows.tables
        for row, (pane, k) in enumerate(groups(rows)):
            own = [one for one in readings if one[:2] == (pane, k)]
            exact = [Fraction(one[2]) for one in own]
            assert Fraction(of_x.measures[1][row], 1 << SCALE) == sum(exact)
            assert Fraction(of_x.measures[2][row], 1 << 2 * SCALE) == sum(one**2 for one in exact)
            assert of_b.measures[1][row] == sum(one[3] for one in own)
            assert of_b.measures[2][row] == sum(one[3] ** 2 for one in own)
            assert of_x.measures[0][row] == of_b.measures[0][row] == rows.counts[row] == len(own)


def test_a_million_doubles_have_one_sum_in_any_order_of_merging() -> None:
    random_ = np.random.default_rng(2)
    x = random_.normal(size=1_000_000) * 10.0 ** random_.integers(-30, 30, 1_000_000)
    asked = grouping(("avg", X), by=())
    (expected,) = of_doubles(x, np.array([0]))
    (_, partial) = partials(asked.aggregates)
    for _ in range(3):
        random_.shuffle(x)
        panes, tables = OpenPanes(asked), []
        for batch in np.array_split(x, 50):
            panes.add(np.zeros(len(batch), np.int64), {("", "x"): Vector(batch)}, len(batch))
            if random_.random() < 0.3:
                tables.append(panes.take().tables[1])
        tables.append(panes.take().tables[1])
        random_.shuffle(np.array(tables, np.object_))
        (total,) = partial.merged(tables).measures[1].tolist()
        assert total == expected
        assert (total / (1 << SCALE)).hex() == (int(expected) / (1 << SCALE)).hex()


def test_a_cut_takes_the_panes_that_begin_before_its_time() -> None:
    panes = OpenPanes(grouping(("max", X)))
    add(panes, [0, 10, -(2**63), 2**63 - 1, 10], k=["p", "p", None, "q", "q"], x=[1.0, 2.0, 3.0, None, -0.0])
    assert panes.rows == 5
    first = panes.take(10)
    assert groups(first) == [(-(2**63), None), (0, "p")]
    assert first.tables[1].measures[0].tolist() == [3.0, 1.0]
    add(panes, [10], k=["q"], x=[-1.0])
    rest = panes.take()
    assert groups(rest) == [(10, "p"), (10, "q"), (2**63 - 1, "q")]
    assert rest.counts.tolist() == [1, 2, 1]
    assert rest.tables[1].keys[0].tolist() == [0, 1]  # the row of a group with NULL alone is missing
    assert str(rest.tables[1].measures[0].tolist()) == "[2.0, 0.0]"
    assert panes.rows == 0
    assert len(panes.take()) == 0


def test_rows_can_be_taken_apart() -> None:
    r = random.Random(3)
    asked = grouping(("avg", X), ("median", X), ("min", V))
    panes = OpenPanes(asked)
    for _ in range(20):
        size = r.randint(1, 30)
        add(
            panes,
            [r.randrange(3) for _ in range(size)],
            k=r.choices(("p", "q", None), k=size),
            x=r.choices((None, 1.0, 2.5), k=size),
            v=r.choices((None, "y", "z"), k=size),
        )
    rows = panes.take()
    order = r.sample(range(len(rows)), len(rows))
    again = rows.take(np.array(order)).take(np.argsort(order))
    for one, other in zip(rows.tables, again.tables, strict=True):
        for a, b in zip((*one.keys, *one.measures), (*other.keys, *other.measures), strict=True):
            assert a.tolist() == b.tolist()
    assert groups(again) == groups(rows)
    part = rows.take(rows.counts > 5)
    assert part.counts.tolist() == [one for one in rows.counts.tolist() if one > 5]


def test_groups_and_texts_are_forgotten() -> None:
    panes = OpenPanes(Grouping((K,), (Aggregate("count", V, True, Type.BIGINT),), ()))
    add(panes, [1, 5], k=["first", "kept"], v=["first", "a"])
    panes.take(2)
    for number_ in range(30):
        names = [f"group {number_} {i}" for i in range(500)]
        add(panes, [1] * 500, k=names, v=names)
        assert (panes.rows, panes.entries) == (501, 1_002)
        assert len(panes.take(2)) == 500
    held = panes.bytes
    assert held < 2_000_000
    assert groups(panes.take()) == [(5, "kept")]
    assert panes.bytes < 200_000


def test_texts_are_groups_with_and_without_numbers() -> None:
    asked = grouping(("sum", X))
    decoder = FlatDecoder({"k": Type.VARCHAR, "x": Type.DOUBLE}, "us")
    r = random.Random(4)
    numbered, plain = OpenPanes(asked), OpenPanes(asked)
    for round_ in range(60):
        names = [f"group {round_ // 9} {i}" for i in range(400)]
        readings = [(r.choice((None, *names)), float(r.randrange(9))) for _ in range(900)]
        vectors, _ = decoder.decode([orjson.dumps({"k": k, "x": x}) for k, x in readings])
        assert isinstance(vectors[0], NumberedTexts)
        columns = {("", "k"): vectors[0], ("", "x"): vectors[1]}
        if r.random() < 0.2:
            columns = {name: vector.take(slice(None)) for name, vector in columns.items()}
        numbered.add(np.zeros(900, np.int64), columns, 900)
        add(plain, [0] * 900, k=[k for k, _ in readings], x=[x for _, x in readings])
        if round_ % 4 == 3:
            one, other = numbered.take(), plain.take()
            assert groups(one) == groups(other)
            assert one.tables[1].measures[0].tolist() == other.tables[1].measures[0].tolist()


def test_null_may_have_the_number_of_a_text() -> None:
    panes = OpenPanes(grouping(("count", None)))
    names, null = np.array(["p", None, "q"], np.object_), np.array([False, True, False])
    texts = NumberedTexts(names, null, numbers=np.array([1, 1, 2]), table=OpenPanes(grouping()))
    for _ in range(2):
        panes.add(np.zeros(3, np.int64), {("", "k"): texts}, 3)
    rows = panes.take()
    assert sorted(map(str, groups(rows))) == ["(0, 'p')", "(0, 'q')", "(0, None)"]
    assert rows.counts.tolist() == [2, 2, 2]


def test_long_texts_count_as_the_memory_that_they_are() -> None:
    asked = Grouping(
        (), (Aggregate("count", V, True, Type.BIGINT), Aggregate("arg_max", V, False, V.type, order=X)), ()
    )
    panes = OpenPanes(asked)
    for number_ in range(20):
        add(panes, [number_], v=[str(number_) * 100_000], x=[1.0])
    assert 3_000_000 < panes.bytes < 8_000_000
    panes.take()
    assert panes.bytes < 300_000


def test_ten_thousand_groups_take_far_less_than_200_mb() -> None:
    panes = OpenPanes(grouping(("avg", X), ("var_pop", X), ("min", X), ("max", X)))
    names = [f"sensor {i}" for i in range(10_000)]
    for pane in range(2):
        add(panes, [pane] * 10_000, k=names, x=[1.0] * 10_000)
    assert panes.rows == 20_000
    assert panes.bytes < 20_000_000
    panes.take()
    assert panes.bytes < 3_000_000

"""Rows of partial aggregates as JSON: what is read is what was written, and anything else is refused."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest
from tests.operators import standing_evaluator

from tamis.declarations.aggregates import Aggregate
from tamis.errors import InputError
from tamis.expressions.nodes import Column, Type
from tamis.expressions.vectors import Vector
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.pane_document_sizes import (
    document_bytes,
    frame_bytes,
    most_document_bytes,
    row_bytes,
)
from tamis.operators.windows.pane_documents import from_document, to_document
from tamis.operators.windows.pane_rows import PaneRows
from tamis.operators.windows.partials import partials
from tamis.plan.nodes import Grouping

K, V = Column("", "k", Type.VARCHAR), Column("", "v", Type.VARCHAR)
X, B = Column("", "x", Type.DOUBLE), Column("", "b", Type.BIGINT)
SENT = Grouping(
    (K,),
    (
        Aggregate("stddev_pop", X, False, Type.DOUBLE),
        Aggregate("min", X, False, Type.DOUBLE),
        Aggregate("max", X, False, Type.DOUBLE),
        Aggregate("sum", B, False, Type.BIGINT),
        Aggregate("median", B, False, Type.DOUBLE),
        Aggregate("arg_max", V, False, Type.VARCHAR, order=X),
    ),
    (),
)
QUERY = (
    "CREATE STREAM s (ts TIMESTAMP, k VARCHAR, b BIGINT, x DOUBLE, v VARCHAR, WATERMARK FOR ts AS ts);"
    " CREATE ALERT q AS SELECT k, stddev_pop(x) AS s, min(x) AS l, max(x) AS g, sum(b) AS t, median(b) AS m,"
    " arg_max(v, x) AS a FROM TUMBLE(s, ts, INTERVAL '10 us') GROUP BY window_start, k"
)


def rows_of(size: int, r: random.Random) -> PaneRows:
    panes = OpenPanes(SENT)
    columns: dict[tuple[str, str], Vector] = {
        ("", "k"): Vector.from_list(r.choices(("p", "q", None, "\u20ac"), k=size), Type.VARCHAR),
        ("", "x"): Vector.from_list(r.choices((None, 0.5, -0.0, 1e300, 5e-324, 2.0), k=size), Type.DOUBLE),
        ("", "b"): Vector.from_list(r.choices((None, 2**63 - 1, -(2**63), 3), k=size), Type.BIGINT),
        ("", "v"): Vector.from_list(r.choices((None, "y", ""), k=size), Type.VARCHAR),
    }
    panes.add(np.array(r.choices((0, 20, -(2**60), 7), k=size), np.int64), columns, size)
    return panes.take()


def document(size: int = 40) -> dict[str, Any]:
    read: dict[str, Any] = orjson.loads(orjson.dumps(to_document(rows_of(size, random.Random(4)), SENT)))
    return read


def same(one: PaneRows, other: PaneRows) -> bool:
    def plain(rows: PaneRows) -> list[Any]:
        groups = [vector.to_list() for vector in rows.groups]
        tables = [[array.tolist() for array in (*t.keys, *t.measures)] for t in rows.tables]
        kinds = [[array.dtype for array in (*t.keys, *t.measures)] for t in rows.tables]
        return [rows.panes.tolist(), groups, tables, kinds]

    return plain(one) == plain(other)


def test_documents_have_the_rows() -> None:
    r = random.Random(5)
    for _ in range(300):
        rows = rows_of(r.choice((0, 1, 2, 5, 30)), r)
        text = orjson.dumps(to_document(rows, SENT))
        assert same(from_document(orjson.loads(text), SENT), rows)


def test_the_size_of_documents_has_a_bound() -> None:
    r = random.Random(7)
    for _ in range(200):
        rows = rows_of(r.choice((0, 1, 5, 30, 300)), r)
        bounds = row_bytes(rows, SENT)
        chosen = np.flatnonzero(np.array([r.random() < 0.7 for _ in bounds], np.bool_))
        size = len(orjson.dumps(to_document(rows.take(chosen), SENT)))
        assert size <= frame_bytes(SENT) + bounds[chosen].sum()
        values = sum(
            len(table) for table, of in zip(rows.tables, partials(SENT.aggregates), strict=True) if of.each
        )
        assert document_bytes(rows, SENT) <= most_document_bytes(SENT, len(rows), values)
        # Else a cut would be divided into far too many records.
        assert bounds[chosen].sum() <= 8 * size


def test_a_row_of_one_reading_has_its_values_alone() -> None:
    panes = OpenPanes(SENT)
    reading: list[tuple[Column, Any]] = [(K, "p"), (X, 20.5), (B, 7), (V, "y")]
    columns = {("", column.name): Vector.from_list([value], column.type) for column, value in reading}
    panes.add(np.array([60]), columns, 1)
    assert to_document(panes.take(), SENT) == {
        "panes": [60],
        "groups": [["p"]],
        "tables": [
            {"values": [20.5]},
            {"values": [7]},
            {"lengths": [1], "values": [7]},
            {"order": [20.5], "values": ["y"]},
        ],
    }


def change(path: str, value: Any) -> Callable[[Any], None]:
    """Set a value; the path has names and numbers."""

    def changed(target: Any) -> None:
        *steps, last = (int(one) if one.lstrip("-").isdigit() else one for one in path.split("."))
        for step in steps:
            target = target[step]
        target[last] = value(target[last]) if callable(value) else value

    return changed


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (change("panes", None), "rows, panes"),
        (change("panes", lambda old: old[1:]), "rows, groups"),
        (change("panes.0", 0.5), "rows, panes"),
        (change("panes.0", True), "rows, panes"),
        (change("panes", lambda old: [2**63 - 1] * len(old)), "rows, panes"),
        (change("groups", []), "rows, groups"),
        (change("groups.0.0", 5), "rows, groups, value 0"),
        (change("counts", lambda old: old[1:]), "rows, counts"),
        (change("counts.0", 0), "rows, counts"),
        (change("counts.0", 2**41), "rows, counts"),
        (change("counts.0", "1"), "rows, counts"),
        (change("tables", lambda old: old[1:]), "rows, tables"),
        (change("tables.0", []), "table 0"),
        (change("tables.0.counts.0", 2**30), "table 0, counts"),
        (change("tables.0.values", [None]), "table 0, values"),
        (change("tables.0.absent", [99]), "table 0, absent"),
        (change("tables.0.absent", [-1]), "table 0, absent"),
        (change("tables.0.total", [[], []]), "table 0, total"),
        (change("tables.0.squares.1.0", -2_148), "table 0, squares"),
        (change("tables.0.total.0.0", 0.5), "table 0, total"),
        (change("tables.0.total.0.0", "f" * 1_000_000), "table 0, total"),
        (change("tables.0.total.0.0", "x"), "table 0, total"),
        (change("tables.0.total.1.0", 2_000), "table 0, total"),
        (change("tables.0.total.1.0", 10**12), "table 0, total"),
        (change("tables.0.total.1.0", -1_075), "table 0, total"),
        (change("tables.0.squares.0.0", -5), "table 0, squares"),
        (change("tables.0.squares.0.0", "f" * 2_000), "table 0, squares"),
        (change("tables.0.least.0", 1.7e308), "table 0, least"),
        (change("tables.0.least.0", None), "table 0, least"),
        (change("tables.0.least", lambda old: old[1:]), "table 0, least"),
        (change("tables.1.total.0", "f" * 40), "table 1, total"),
        (change("tables.1.total.0", None), "table 1, total"),
        (change("tables.2.lengths.0", -1), "table 2, lengths"),
        (change("tables.2.lengths.0", 2**40), "table 2, lengths"),
        (change("tables.2.values", lambda old: old[1:]), "table 2, values"),
        (change("tables.2.values.0", 2**63), "table 2, values, value 0"),
        (change("tables.2.counts.0", 2**20), "table 2, counts"),
        (change("tables.3.order", lambda old: old[1:]), "table 3, order"),
        (change("tables.3.values.0", 1), "table 3, values, value 0"),
    ],
)
def test_what_does_not_fit_is_refused(changed: Callable[[Any], None], where: str) -> None:
    read = document()
    from_document(read, SENT)
    changed(read)
    with pytest.raises(InputError) as raised:
        from_document(read, SENT)
    assert str(raised.value).startswith(where), raised.value


@pytest.mark.parametrize("whole", [None, [], "rows", 5, {}])
def test_other_documents_are_refused(whole: object) -> None:
    with pytest.raises(InputError):
        from_document(whole, SENT)


@pytest.mark.parametrize(("function", "column"), [("mode", X), ("avg", V), ("var_pop", V)])
def test_groupings_that_no_query_has_are_refused(function: str, column: Column) -> None:
    sent = Grouping((), (Aggregate(function, column, False, Type.DOUBLE),), ())
    read = {"panes": [0], "groups": [], "tables": [{"values": ["a"]}]}
    with pytest.raises(InputError, match="grouping"):
        from_document(read, sent)


def test_no_document_breaks_the_operator() -> None:
    """Random changes: a document is refused, or the operator can count its rows."""
    r = random.Random(6)
    taken = refused = 0
    for _ in range(1_000):
        read = copy.deepcopy(document(r.choice((1, 4, 40))))
        for _ in range(r.randint(1, 2)):
            _spoil(r, read)
        try:
            rows = from_document(read, SENT)
        except InputError:
            refused += 1
            continue
        query = standing_evaluator(QUERY, "q")
        assert isinstance(query, WindowedGroups)
        query.take_panes(rows, SENT)
        query.advance("s", 2**61)
        taken += 1
    assert taken > 50
    assert refused > 500


def _spoil(r: random.Random, read: Any) -> None:
    """Change one value anywhere."""
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                collect(node[key])

    collect(read)
    node, key = r.choice(places)
    values: tuple[Any, ...] = (
        None,
        0,
        -1,
        1,
        2,
        2**40,
        2**63 - 1,
        -(2**63),
        1e308,
        -0.0,
        0.5,
        "",
        "f",
        "-ff",
        True,
        [],
        {},
    )
    node[key] = r.choice(values)

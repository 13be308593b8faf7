"""The partial aggregates that edges compute for several queries, and how a query finds its own among them."""

from __future__ import annotations

from itertools import permutations

import pytest
from tests.operators import compile_query

from tamis.errors import RefusedError
from tamis.operators.windows.groups import WindowedGroups
from tamis.operators.windows.open_panes import OpenPanes
from tamis.operators.windows.shared_panes import Projection
from tamis.plan import nodes
from tamis.plan.nodes import Grouping
from tamis.planning.physical.lowering import lowered
from tamis.query.parse import catalog_of
from tamis.sharing.partial_groupings import mergeable, united

STREAM = (
    "CREATE STREAM s (ts TIMESTAMP, k VARCHAR, j INT, x DOUBLE, b BIGINT, WATERMARK FOR ts AS ts);"
    " CREATE FUNCTION twice(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'twice';"
)
WINDOW = "TUMBLE(s, ts, INTERVAL '10 us')"


def node(select: str, group: str, source: str = WINDOW, rest: str = "") -> nodes.Windows:
    sql = f"{STREAM} CREATE ALERT q AS SELECT {select} FROM {source} {rest} GROUP BY window_end, {group}"
    catalog = catalog_of(sql)
    query = lowered(catalog.alerts["q"].query, catalog)
    assert isinstance(query, nodes.Windows)
    return query


def lower(select: str, group: str = "k", source: str = WINDOW) -> Grouping:
    found = mergeable(node(select, group, source))
    assert found is not None
    return found


def test_aliases_order_having_and_select_make_no_difference() -> None:
    one = lower("k, avg(x + 1) * 2 AS c, count(*) AS n", "k, j + 1 HAVING max(b) > 1")
    other = lower(
        "count(*) AS m, max(u.b) AS b, avg(u.x + 1) AS c",
        "u.j + 1, u.k",
        "CUMULATE(s, ts, INTERVAL '2 us', INTERVAL '6 us') u",
    )
    assert one == other
    assert one.select == ()
    assert one.having is None
    assert {column.alias for column in one.by} == {""}


def test_the_union_does_not_depend_on_the_order() -> None:
    all_ = [lower(one) for one in ("avg(x) AS c", "sum(x) AS c", "max(b + 1) AS c", "median(b + 1) AS c")]
    (union,) = {united(list(order)) for order in permutations(all_)}
    assert [one.function for one in union.aggregates] == ["avg", "max", "median", "sum"]
    assert len(union.computed) == 1
    assert united([union]) == union
    with pytest.raises(ValueError, match="different groups"):
        united([all_[0], lower("avg(x) AS c", "j")])


def test_constants_of_two_types_are_two_columns() -> None:
    union = united([lower("sum(b * 2) AS c"), lower("sum(x * 2) AS c"), lower("sum(b * 2.0) AS c")])
    assert len({one.name for one in union.computed}) == len({one.expr for one in union.computed}) == 3


@pytest.mark.parametrize(
    ("select", "group", "rest", "mergeable_"),
    [
        ("count(*) AS c", "k", "", True),
        ("twice(avg(x)) AS c", "k HAVING twice(avg(x)) > 1", "", True),
        ("avg(twice(x)) AS c", "k", "", False),
        ("avg(x) AS c", "twice(x) > 1", "", False),
        ("avg(x) AS c", "k", "WHERE twice(x) + 1 > 2", False),
        ("avg(x) FILTER (WHERE twice(x) > 1) AS c", "k", "", False),
        ("arg_max(x, twice(x)) AS c", "k", "", False),
    ],
)
def test_python_functions_run_at_the_joiner_alone(
    select: str, group: str, rest: str, mergeable_: bool
) -> None:
    assert (mergeable(node(select, group, rest=rest)) is not None) == mergeable_


@pytest.mark.parametrize(
    "sent",
    [
        lower("count(*) AS c, avg(x) AS a, min(x) AS m", "j"),
        lower("count(*) AS c, avg(x) AS a, min(x) AS m", "k, j"),
        lower("count(*) AS c, avg(x) AS a"),
        lower("count(*) AS c, min(x) AS a"),
        lower("avg(b) AS a, min(x + 1) AS m"),
    ],
)
def test_a_query_refuses_rows_that_lack_what_it_needs(sent: Grouping) -> None:
    sql = f"{STREAM} CREATE ALERT q AS SELECT avg(x) AS a, min(x) AS m FROM {WINDOW} GROUP BY k, window_end"
    catalog = catalog_of(sql)
    query = compile_query(catalog.alerts["q"].query, catalog)
    assert isinstance(query, WindowedGroups)
    with pytest.raises(RefusedError, match="edges"):
        query.take_panes(OpenPanes(sent).take(), sent)


def test_a_query_finds_its_measures_among_more() -> None:
    query = node("max(x) AS g, count(x) AS n, stddev(x) AS d", "k").grouping
    sent = united([lower("sum(x) AS c, min(x) AS m, count(b) AS n"), lower("max(x) AS g, stddev(x) AS d")])
    (_, together), (_, measures) = Projection.of(sent, query).tables
    assert together == (0,)
    assert len(measures) == 4

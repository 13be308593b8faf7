"""Queries with similar(…): the watched streams that they read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.declarations.definitions import PatternDef
from tamis.declarations.watches import NamedPattern, pattern_watches
from tamis.errors import SqlError, SqlErrors
from tamis.expressions.nodes import Column, Type
from tamis.expressions.sql_text import to_sql
from tamis.planning.build import first_plan
from tamis.query.catalog import apply, dependents
from tamis.query.model import AlertDef, Catalog, Drop, Explain, Query, UnionQuery
from tamis.query.parse import catalog_of, parse
from tamis.query.patterns.watch_text import inline_text

STREAM = """
CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, load INT,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE PATTERN fault VALUES (0, 1, 4, 9, 4, 1, 0) WITH (max_gap = '3 seconds');
CREATE PATTERN days VALUES ('mo', (0, 1, 2)), ('tu', (3, -1.5, 2e3));
"""
ALERT = """
CREATE ALERT shaken AS
SELECT v.machine, similarity(v.value, 'fault') AS distance, scale(v.value, 'fault'), shift(v.value, 'fault'),
  pattern(v.value, ANY, 0.1, scale => (0.5, NULL))
FROM vib v
WHERE similar(v.value, 'fault', 0.5) AND load > 5;
"""


def test_a_query_with_similar_reads_a_watched_stream() -> None:
    catalog = catalog_of(STREAM + ALERT)
    query = catalog.alerts["shaken"].query
    (watched,) = query.watched
    assert [source.stream for source in query.sources] == [watched.name]
    assert catalog.streams == {"vib": catalog.streams["vib"], watched.name: watched}
    assert watched.base == "vib" and watched.shown_name == "vib"
    every, fault = pattern_watches(watched.watches)
    assert (every.asked, fault.asked) == ("ANY", "fault")
    assert [one.name for one in every.patterns] == ["fault", "days/mo", "days/tu"]
    assert (every.epsilon, every.scale, every.shift) == (0.1, (0.5, None), None)
    assert fault.patterns == catalog.patterns["fault"].members
    assert fault.patterns[0].max_gap == 3_000_000
    assert fault.value == Column("", "value", Type.DOUBLE)
    filters = [to_sql(conjunct.expr) for conjunct in query.conjuncts]
    assert filters == [f"v.{fault.distance.name} IS NOT NULL", "v.load > 5"]
    assert [to_sql(output.expr) for output in query.select[1:]] == [
        f"v.{fault.distance.name}",
        f"v.{fault.scale_column.name}",
        f"v.{fault.shift_column.name}",
        f'v."{every.pattern_column.name}"',
    ]


def test_the_plan_has_the_watched_stream_behind_its_base() -> None:
    plan = first_plan(catalog_of(STREAM + ALERT), shards={"edge/vib": "vib"})
    base, watched = plan.streams
    assert (base.name, base.base, base.topics) == ("vib", None, ())
    assert (watched.base, watched.shards_of) == ("vib", "vib")
    assert [watch.asked for watch in watched.watches] == ["ANY", "fault"]
    assert [topic.name for topic in watched.topics] == [f"tamis.stream.{watched.name}.1"]
    assert plan.definitions[0].inputs[0].stream == watched.name


def test_a_watched_stream_is_there_as_long_as_a_query_reads_it() -> None:
    catalog = catalog_of(STREAM + ALERT + ALERT.replace("shaken", "again"))
    (watched,) = catalog.alerts["shaken"].query.watched
    assert catalog.alerts["again"].query.watched[0] is watched
    apply(catalog, Drop("alert", "shaken"))
    assert watched.name in catalog.streams
    apply(catalog, Drop("alert", "again"))
    assert list(catalog.streams) == ["vib"]


def made(sql: str, *more: str) -> Query:
    """The query of EXPLAIN SELECT."""
    catalog = catalog_of(STREAM, *more)
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    return statement.target.query


def test_a_short_call_means_the_only_similar_with_its_value_and_pattern() -> None:
    """Wherever it stands: also in front of it, or in an ON that doesn't see its stream's partner yet."""
    query = made(
        "SELECT shift(b.value + 1, 'fault') FROM vib a"
        " JOIN vib b ON a.machine = b.machine AND similarity(a.value, 'fault') < 0.25"
        " JOIN vib c ON b.machine = c.machine AND b.ts = a.ts AND c.ts = a.ts"
        " WHERE similar(b.value + 1, 'fault', 0.5) AND similar(a.value, 'fault', 0.75)"
        " AND similar(a.load, 'fault', 0.125)"
    )
    asked = {
        source.alias: [(to_sql(w.value), w.epsilon) for w in pattern_watches(stream.watches)]
        for source in query.sources
        for stream in query.watched
        if stream.name == source.stream
    }
    assert {alias: sorted(found) for alias, found in asked.items()} == {
        "a": [("load", 0.125), ("value", 0.75)],
        "b": [("value + 1", 0.5)],
    }
    assert query.sources[2].stream == "vib"
    shift = next(
        w.shift_column for s in query.watched for w in pattern_watches(s.watches) if w.epsilon == 0.5
    )
    assert query.select[0].expr == replace(shift, alias="b")


def test_equal_calls_are_one_watch() -> None:
    query = made(
        "SELECT similarity(value, 'fault', 0.50), scale(value, 'fault', 5e-1, shift => NULL) FROM vib"
        " WHERE similar(value, 'fault', 0.5, scale => (NULL, NULL)) OR similar((value), 'fault', (0.5))"
    )
    (stream,) = query.watched
    assert len(stream.watches) == 1


def test_the_order_of_calls_makes_no_difference() -> None:
    one, other = "similar(value, 'fault', 0.5)", "similar(value, ANY, 0.25)"
    names = {made(f"SELECT ts FROM vib WHERE {a} AND {b}").sources for a, b in ((one, other), (other, one))}
    assert len(names) == 1


def test_a_member_of_a_folder_and_all_of_them() -> None:
    query = made("SELECT ts FROM vib WHERE similar(value, 'days/tu', 0.5) AND similar(value, 'days', 0.25)")
    names = {
        watch.asked: [one.name for one in watch.patterns]
        for watch in pattern_watches(query.watched[0].watches)
    }
    assert names == {"days/tu": ["days/tu"], "days": ["days/mo", "days/tu"]}


def test_queries_over_derived_streams_and_subqueries_read_their_watched_streams() -> None:
    derived = "CREATE STREAM d AS SELECT machine, ts, value FROM vib WHERE similar(value, 'fault', 0.5);"
    one = made("SELECT machine FROM d WHERE value > 5", derived)
    other = made(
        "SELECT machine FROM (SELECT * FROM vib WHERE similar(value, 'fault', 0.5)) AS d WHERE value > 5"
    )
    both = made("SELECT d.machine FROM d, vib v WHERE d.ts = v.ts AND similar(v.load, ANY, 0.1)", derived)
    assert one.watched == other.watched == both.watched[:1]
    assert one.sources[0].via == ("d",) and other.sources[0].via == ()
    assert [pattern_watches(stream.watches)[0].asked for stream in both.watched] == ["fault", "ANY"]


def test_a_star_has_no_further_columns() -> None:
    query = made("SELECT * FROM vib WHERE similar(value, 'fault', 0.5)")
    assert [output.name for output in query.select] == ["machine", "ts", "value", "load"]


def test_members_of_a_union_read_their_own_watched_streams() -> None:
    query = made(
        "SELECT DISTINCT machine FROM vib WHERE similar(value, 'fault', 0.5)"
        " UNION SELECT machine FROM vib WHERE similar(value, 'days', 0.5)"
    )
    assert isinstance(query, UnionQuery)
    assert [len(member.watched) for member in query.members] == [1, 1]
    assert query.watched == (*query.members[0].watched, *query.members[1].watched)


def test_functions_of_users_go_before_those_of_the_same_name() -> None:
    """Fleets from before similar() may have a function `scale`."""
    own = "CREATE FUNCTION scale(x DOUBLE) RETURNS DOUBLE AS x * 2;"
    query = made("SELECT scale(value) AS s FROM vib WHERE similar(value, 'fault', 0.5)", own)
    assert to_sql(query.select[0].expr) == "vib.value * 2"
    with pytest.raises(SqlErrors, match="move CREATE FUNCTION scale in front"):
        catalog_of(f"{STREAM} CREATE ALERT q AS SELECT scale(value) AS s FROM vib; {own}")


def test_a_pattern_is_dropped_after_its_readers() -> None:
    catalog = catalog_of(
        STREAM, "CREATE STREAM d AS SELECT machine, ts FROM vib WHERE similar(value, ANY, 0.1);" + ALERT
    )
    assert list(dependents(catalog, "pattern", "days")) == ["stream 'd'", "alert 'shaken'"]
    apply(catalog, Drop("alert", "shaken"))
    with pytest.raises(SqlError, match="pattern 'fault' is used by stream 'd'"):
        apply(catalog, Drop("pattern", "fault"))
    apply(catalog, Drop("stream", "d"))
    apply(catalog, Drop("pattern", "fault"))
    assert list(catalog.patterns) == ["days"] and list(catalog.streams) == ["vib"]


names = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters=";"), min_size=1, max_size=20)
values = st.lists(
    st.floats(-1e150, 1e150) | st.integers(-(10**20), 10**20).map(float), min_size=2, max_size=20
).filter(lambda found: max(found) - min(found) > 1e-100)


@given(
    st.dictionaries(names, values, max_size=5), values, st.integers(1, 10**12), st.sampled_from(["p", "a_1"])
)
def test_the_sql_of_a_pattern_is_read_as_the_same_pattern(
    folder: dict[str, list[float]], single: list[float], max_gap: int, name: str
) -> None:
    members = tuple(NamedPattern(f"{name}/{member}", tuple(v), max_gap) for member, v in folder.items())
    members = members or (NamedPattern(name, tuple(single), max_gap),)
    sql = inline_text(name, members)
    (read,) = parse(sql, Catalog())
    assert read == PatternDef(name, members, sql=sql)
    assert repr(vars(read)["members"]) == repr(members)  # -0.0 and 0.0 are equal

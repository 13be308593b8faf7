"""Queries with similar(…): the watched streams that they read."""

from __future__ import annotations

from tamis.expressions.nodes import Column, Type
from tamis.expressions.sql_text import to_sql
from tamis.planning.build import first_plan
from tamis.query.catalog import apply
from tamis.query.model import Drop
from tamis.query.parse import catalog_of

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
    every, fault = watched.watches
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

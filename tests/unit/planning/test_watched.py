"""Plans and explanations of queries with similar(…)."""

from __future__ import annotations

import re

import pytest

from tamis.declarations.watches import pattern_watches
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.planning.build import first_plan
from tamis.planning.explain import estimated, explain, grown
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.explanations.text import text as shown
from tamis.query.catalog import apply
from tamis.query.model import AlertDef, Explain
from tamis.query.parse import catalog_of, parse
from tamis.watching.series_watcher import SeriesWatcher

STREAMS = """
CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE CHECK (value BETWEEN -100 AND 100),
  load INT, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 100, rate = '1/s');
CREATE STREAM temp (machine VARCHAR KEY, ts TIMESTAMP, t DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 100, rate = '1/s');
CREATE PATTERN fault VALUES (0, 1, 4, 9, 4, 1, 0) WITH (max_gap = '3 seconds');
CREATE PATTERN days VALUES ('mo', (0, 1, 2)), ('tu', (3, -1.5, 2e3)), ('we', (1, 2, 1, 2));
"""
INTERNAL = re.compile(r"_similar_|(similarity|scale|shift|pattern)_\w*_[0-9a-f]{6}")


def explained(sql: str, *, witness: bool = False) -> Explanation:
    """The explanation of EXPLAIN SELECT, whose watched stream isn't in the catalogue."""
    catalog = catalog_of(STREAMS)
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    found = estimated(catalog, explain(catalog, statement.target), {})
    return grown(catalog, statement.target, found) if witness else found


def test_an_explanation_shows_calls_patterns_and_what_an_edge_keeps() -> None:
    found = explained("SELECT machine, scale(value, 'fault') FROM vib v WHERE similar(v.value, 'fault', 0.5)")
    (source,) = found.document()["streams"]
    assert source["stream"] == "vib"
    assert source["predicate"] == "similar(value, 'fault', 0.5)"
    assert source["similar"]["calls"] == [
        {
            "call": "similar(value, 'fault', 0.5)",
            "patterns": [{"name": "fault", "length": 7, "max_gap": 3_000_000}],
        }
    ]
    assert source["similar"]["readings_per_key"] == 6
    text = shown(found, verbose=True)
    assert "vib as v: no omission" in text
    assert "similar(value, 'fault', 0.5) compares with fault (7 values)" in text
    assert "no window has a gap of more than 3 s between two readings" in text
    assert "estimated" not in text  # nobody knows how many windows match
    assert not INTERNAL.search(text)


def test_the_memory_of_a_key_is_that_of_the_evaluator() -> None:
    catalog = catalog_of(STREAMS)
    (statement,) = parse("EXPLAIN SELECT machine FROM vib WHERE similar(value, ANY, 0.1)", catalog)
    assert isinstance(statement, Explain) and isinstance(statement.target, AlertDef)
    (stream,) = statement.target.query.watched
    (source,) = explain(catalog, statement.target).document()["streams"]
    assert source["similar"]["bytes_per_key"] == SeriesWatcher(stream.watches).bytes_per_key > 200
    names = [one["name"] for one in source["similar"]["calls"][0]["patterns"]]
    assert names == ["fault", "days/mo", "days/tu", "days/we"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v.machine FROM vib v JOIN temp t ON v.machine = t.machine"
        " AND t.ts BETWEEN v.ts - INTERVAL '1' MINUTE AND v.ts + INTERVAL '1' MINUTE"
        " WHERE NOT similar(v.value, 'days/mo', 0.5)"
        " AND similarity(v.value, 'fault', 0.5, shift => (-1, 1)) * 10 < t.t - 77",
        "SELECT v.machine FROM vib v JOIN temp t ON v.machine = t.machine AND v.ts < t.ts"
        " WHERE similarity(v.value, 'fault', 0.5) < t.t",
        "SELECT v.machine FROM vib v JOIN temp t ON v.machine = t.machine AND v.ts < t.ts"
        " WHERE similarity(v.value, 'fault', 0.5) > 3 AND similarity(v.value, 'fault', 0.5) < t.t",
        "SELECT machine, pattern(value, ANY, 0.2), count(*) FROM TUMBLE(vib, ts, INTERVAL '1' HOUR)"
        " GROUP BY machine, window_start, pattern(value, ANY, 0.2)",
        "SELECT DISTINCT machine, scale(value, 'fault', 0.1) FROM vib WHERE similar(value, 'fault', 0.1)",
    ],
)
def test_explanations_have_no_internal_names(sql: str) -> None:
    found = explained(sql, witness=True)
    for text in (shown(found, verbose=True), str(found.document())):
        assert not INTERNAL.search(text), text
        assert re.search(r"(similar|similarity|pattern|scale)\((v\.)?value, ", text)


def test_the_names_of_patterns_are_a_domain() -> None:
    """DISTINCT needs bounded memory, since only these names can come."""
    found = explained("SELECT DISTINCT machine, pattern(value, 'days', 0.1) AS p FROM vib")
    assert found.memory.verdict == "bounded"


def test_an_alert_reads_the_patterns_that_its_statements_saw() -> None:
    """ANY of the derived stream stands for the patterns that were there, not for those of the alert."""
    catalog = catalog_of(
        STREAMS,
        "CREATE STREAM known AS SELECT machine, ts, value FROM vib WHERE similar(value, ANY, 0.1);"
        "CREATE PATTERN later VALUES (5, 4, 3, 5);"
        "CREATE STREAM more AS SELECT machine, ts, value FROM known;"
        "CREATE PATTERN unused VALUES (5, 4, 3, 5);"
        "CREATE ALERT q AS SELECT DISTINCT k.machine, pattern(v.value, 'later', 0.1) AS p FROM more k, vib v"
        " WHERE k.machine = v.machine AND k.ts = v.ts;",
    )
    apply(catalog, next(iter(parse("CREATE PATTERN last VALUES (1, 2, 1)", catalog))))
    alert = catalog.alerts["q"]
    assert {watch.asked for stream in alert.query.watched for watch in pattern_watches(stream.watches)} == {
        "ANY",
        "later",
    }


def test_plans_with_watched_streams_are_read_as_they_were_written() -> None:
    catalog = catalog_of(
        STREAMS,
        "CREATE ALERT a AS SELECT machine FROM vib WHERE similar(value, ANY, 0.5, scale => (0.5, NULL));"
        "CREATE STREAM s AS SELECT machine, ts FROM vib WHERE similar(value, 'days', 0.25);",
    )
    plan = first_plan(catalog)
    assert decode_plan(encode_plan(plan)) == plan
    topics = {stream.name: [topic.name for topic in stream.topics] for stream in plan.streams}
    assert topics["vib"] == [] and sum(map(len, topics.values())) == 2
    assert "tamis.stream.s.01" in topics[catalog.derived["s"].query.watched[0].name]

"""Plans survive the way over Kafka, and nothing else gets through."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from tests.operators import NO_ROWS
from tests.unit.certificates.catalogs import NEAR, TWO

from tamis.declarations.watches import NamedPattern, Watch
from tamis.errors import InputError
from tamis.expressions.nodes import Column, Type
from tamis.plan import document, model
from tamis.plan.document import LARGEST
from tamis.plan.json_form import alerts_of, decode_plan, encode_plan, version_of
from tamis.plan.model import Plan, StandingQuery
from tamis.plan.nodes import ApplicationTime, Matching, Table, TimedMatching
from tamis.plan.wire import MOST, WireType
from tamis.planning.build import build_plan
from tamis.query.parse import catalog_of


def plan() -> Plan:
    catalog = catalog_of(
        TWO,
        "CREATE ALERT q WITH (max_delay = '5 seconds', gap = '1 minute', severity = 'high')"
        " AS SELECT a.k, a.x + b.x AS s"
        f" FROM a JOIN b ON {NEAR} WHERE a.x + b.x > 3 AND a.y > 1 AND a.k2 = b.k2",
        "CREATE STREAM hot AS SELECT k, ts, x FROM a WHERE x > 30",
    )
    built = build_plan(
        9, catalog, partitions=4, versions={}, topic_numbers={}, since={"e/a": 2}, shard_streams={"e/a": "a"}
    )
    return built.plan


def test_there_and_back() -> None:
    assert decode_plan(encode_plan(plan())) == plan()


def test_watched_streams_there_and_back() -> None:
    pattern = NamedPattern("fault", (0.0, 1.5, 0.0), max_gap=2_000_000)
    watch = Watch(Column("", "x", Type.DOUBLE), "fault", (pattern,), 0.5, (0.1, None), None)
    base = plan().streams[0]
    watched = dataclasses.replace(base, name="a_similar", base=base.name, series_key=("k",), watches=(watch,))
    made = dataclasses.replace(plan(), streams=(*plan().streams, watched))
    assert decode_plan(encode_plan(made)) == made
    assert made.watched(base.name) == (watched,)


def test_a_plan_in_json_is_written_as_older_services_read_it() -> None:
    made = plan()
    # A definition from another process has an equal string, not the default itself.
    other = "".join(("js", "on"))
    streams = tuple(dataclasses.replace(stream, value_format=cast(Any, other)) for stream in made.streams)
    written = encode_plan(dataclasses.replace(made, streams=streams))
    assert b"value_format" not in written
    assert written == encode_plan(made)


def test_a_bound_beyond_64_bits_is_none() -> None:
    known = " WITH (keys = 1000000000000000, rate = '1000000/us')"
    catalog = catalog_of(
        TWO.replace(";\n", f"{known};\n"),
        f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x > b.x",
    )
    built = build_plan(1, catalog, partitions=1, versions={}, topic_numbers={}, since={}, shard_streams={})
    plan = decode_plan(encode_plan(built.plan))
    assert plan == built.plan
    (definition,) = plan.definitions
    assert definition.bound is None
    assert [one.kept for one in definition.inputs] == [None, None]


def test_more_than_is_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST", 1)
    with pytest.raises(InputError, match="the plan has 2 topics of a stream; at most 1 fit"):
        encode_plan(plan())


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every object and every list of records in a plan's JSON."""
    found = [path] if isinstance(document, dict) else []
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            found += places(value, (*path, key))
    return found


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def test_every_field_must_be_there_with_its_type_and_no_other() -> None:
    good = orjson.loads(encode_plan(plan()))
    maps = {("since",), ("shard_streams",), ("retiring",)}
    tried = 0
    for path in places(good):
        for name in list(at(good, path)):
            if path not in maps and name != "certificate":  # which plans of the first release lack
                broken = orjson.loads(orjson.dumps(good))
                del at(broken, path)[name]
                with pytest.raises(InputError):
                    decode_plan(orjson.dumps(broken))
            wrongs: tuple[Any, ...] = ({"a": 1}, [{}], -5, "?" * 2000, 1.5, True)
            for wrong in wrongs:
                if name == "not_null" and wrong is True:
                    continue
                if (name in ("lo", "hi") and wrong == -5) or ((name,) in maps and wrong == {"a": 1}):
                    continue
                broken = orjson.loads(orjson.dumps(good))
                at(broken, path)[name] = wrong
                with pytest.raises(InputError):
                    decode_plan(orjson.dumps(broken))
                tried += 1
        if path not in maps:
            broken = orjson.loads(orjson.dumps(good))
            at(broken, path)["extra"] = 1
            with pytest.raises(InputError, match=r"extra|format"):
                decode_plan(orjson.dumps(broken))
    assert tried > 300


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'"plan"', b'{"format": 2}', b'{"format": 1}', b"\xff", b"[" * 100_000],
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        decode_plan(data)


def test_bytes_that_are_no_text_are_refused_wherever_they_are() -> None:
    good = encode_plan(plan())
    for at in range(0, len(good), 7):
        with pytest.raises(InputError):
            decode_plan(good[:at] + b"\xff" + good[at + 1 :])


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="at most"):
        decode_plan(b" " * (LARGEST + 1))
    good = orjson.loads(encode_plan(plan()))
    good["since"] = {f"shard{i}": 1 for i in range(MOST + 1)}
    with pytest.raises(InputError):
        decode_plan(orjson.dumps(good))


def test_the_message_names_the_place() -> None:
    good = orjson.loads(encode_plan(plan()))
    good["definitions"][0]["inputs"][1]["interval"] = "soon"
    place = r"plan\.definitions\[0\]\.inputs\[1\]\.interval"
    with pytest.raises(InputError, match=f"{place}: expected `int`, got `str`"):
        decode_plan(orjson.dumps(good))


def test_the_version_is_found_without_decoding() -> None:
    document = encode_plan(plan())
    assert version_of(document) == 9
    assert version_of(document[:40]) == 9, "the megabytes behind it are not looked at"
    assert version_of(orjson.dumps(orjson.loads(document), option=orjson.OPT_INDENT_2)) == 9
    for wrong in (b"", b"[]", b"{}", b'{"format":1}', b'{"version":"9"}', b'{"format":1,"version":0}', b"9"):
        with pytest.raises(InputError):
            version_of(wrong)


def test_the_names_of_alerts_are_found_without_decoding() -> None:
    query = StandingQuery("rows", 1, NO_ROWS, (), (), None)
    document = encode_plan(dataclasses.replace(plan(), standing=(query,)))
    assert alerts_of(document) == {"q", "rows"}
    broken = orjson.loads(document)
    broken["definitions"][0]["inputs"] = "nothing"
    assert alerts_of(orjson.dumps(broken)) == {"q", "rows"}
    for wrong in (b"", b"[]", b'{"definitions":7}', b'{"definitions":[7]}', b'{"definitions":[{}]}'):
        with pytest.raises(InputError):
            alerts_of(wrong)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT k FROM s WHERE text = '{}'",
        "SELECT k, count(*) AS n FROM s WHERE text <> '{}' OR text = 'b' GROUP BY k",
        "SELECT DISTINCT a.k FROM timed a JOIN sites b ON a.k = b.k WHERE a.text = '{}'",
    ],
)
def test_long_texts_of_standing_queries_there_and_back(query: str, tmp_path: Path) -> None:
    """A joiner read names of 1,000 characters, and stood still at the plan of a longer text."""
    (tmp_path / "sites.csv").write_text("k\n1\n")
    catalog = catalog_of(
        "CREATE STREAM s (k INT CHECK (k BETWEEN 0 AND 5), text VARCHAR)",
        "CREATE STREAM timed (k INT CHECK (k < 5), ts TIMESTAMP, text VARCHAR, WATERMARK FOR ts AS ts)",
        f"CREATE TABLE sites (k INT) WITH (path = '{tmp_path}/sites.csv')",
        f"CREATE ALERT q AS {query.format('x' * 9_000)}",
    )
    made = build_plan(
        1, catalog, partitions=1, versions={}, topic_numbers={}, since={}, shard_streams={}
    ).plan
    assert len(made.standing) == 1
    assert decode_plan(encode_plan(made)) == made


def test_what_no_service_could_read_is_not_written() -> None:
    table = Table("sites", "/x" * 1_000, (), "")
    node = ApplicationTime((), (TimedMatching((), (), Matching(()), ()),), (table,))
    made = dataclasses.replace(plan(), standing=(StandingQuery("rows", 1, node, (), (), None),))
    with pytest.raises(
        InputError, match=r"alert rows\.node\.tables\[0\]\.path: no service could read its plan"
    ):
        encode_plan(made)


def test_fields_with_a_default_are_left_out_unless_the_first_release_had_them() -> None:
    """Else no service can read the plans of the release before, and older ones can't read the new plan."""
    first = {
        "Definition": {"bound", "for_", "gap", "labels", "severity"},
        "Input": {"columns"},
        "PaneGrid": {"until"},
        "Plan": {"definitions", "retiring", "shard_streams", "since", "streams"},
        "StandingQuery": {"for_", "gap", "labels", "severity"},
        "TopicPlan": {"select"},
    }
    for name, kind in vars(model).items():
        if dataclasses.is_dataclass(kind) and kind.__module__ == model.__name__:
            known = WireType(cast("type[Any]", kind))
            optional = {
                field.name
                for field in dataclasses.fields(kind)
                if {field.default, field.default_factory} != {dataclasses.MISSING}
            }
            assert optional - known.later == first.get(name, set()), name

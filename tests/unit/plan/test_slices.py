"""The part of a plan that an edge decodes: what concerns its streams, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from tests.oracle.fleet.plan_parts import part_of
from tests.unit.certificates.catalogs import NEAR, TWO

from tamis.errors import InputError
from tamis.plan import parts
from tamis.plan.json_form import NewerFormatError, decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.plan.parts import cut
from tamis.planning.build import build_plan
from tamis.query.parse import catalog_of

SHARDS = {"a:e/x": "a", "b:e/x": "b", "a-h:e/x": "a-h"}


def plan() -> Plan:
    """Streams a and b with a join, two alerts over one of them, and a watched and a backfill stream of a."""
    catalog = catalog_of(
        TWO,
        f"CREATE ALERT pair AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x + b.x > 3",
        f"CREATE ALERT old AS SELECT a.k FROM a JOIN b ON {NEAR} WHERE a.x + b.x > 4",
        "CREATE ALERT high AS SELECT k FROM a WHERE x > 3",
        "CREATE ALERT low AS SELECT k FROM b WHERE x < 3",
    )
    since = dict.fromkeys(SHARDS, 2)
    built = build_plan(
        9, catalog, partitions=4, versions={}, topic_numbers={}, since=since, shard_streams=SHARDS
    ).plan
    a = built.stream("a")
    assert a is not None
    more = (
        replace(a, name="a_similar", base="a", topics=()),
        replace(a, name="a-h", origin="a", topics=()),
        replace(a, name="a-h_similar", base="a-h", topics=()),
    )
    old = next(f"{one.alert}@{one.version}" for one in built.definitions if one.alert == "old")
    return replace(built, streams=(*built.streams, *more), retiring={old: 9})


@pytest.mark.parametrize("streams", [{"a"}, {"b"}, {"a", "b"}, {"c"}, None])
def test_a_part_is_the_plan_without_what_concerns_other_streams(streams: set[str] | None) -> None:
    made = plan()
    assert decode_plan(cut(encode_plan(made), streams)) == part_of(made, streams)


def test_the_part_of_one_stream() -> None:
    part = decode_plan(cut(encode_plan(plan()), {"a"}))
    assert [one.name for one in part.streams] == ["a", "a_similar", "a-h", "a-h_similar"]
    assert set(part.since) == set(part.shard_streams) == {"a:e/x", "a-h:e/x"}
    assert {one.alert for one in part.definitions} == {"old", "high"}
    assert len(part.retiring) == 1
    assert decode_plan(cut(encode_plan(plan()), {"b"})).stream("a") is None


def test_a_part_of_a_part_is_the_part() -> None:
    part = cut(encode_plan(plan()), {"a"})
    assert cut(part, {"a"}) == part


def test_what_is_no_plan_is_refused_as_it_would_be_whole() -> None:
    good = orjson.loads(encode_plan(plan()))
    for wrong in (b"", b"{", b"\xff", b"[" * 100_000, orjson.dumps({**good, "version": "1"})):
        assert cut(wrong, {"a"}) == wrong
        with pytest.raises(InputError):
            decode_plan(cut(wrong, {"a"}))
    for newer in ({**good, "format": 2}, {**good, "extra": 1}):
        with pytest.raises(NewerFormatError):
            decode_plan(cut(orjson.dumps(newer), {"a"}))


def test_only_the_parts_of_other_streams_may_have_fields_of_a_newer_release() -> None:
    document = orjson.loads(encode_plan(plan()))
    next(one for one in document["streams"] if one["name"] == "b")["extra"] = 1
    assert decode_plan(cut(orjson.dumps(document), {"a"})) == part_of(plan(), {"a"})
    with pytest.raises(NewerFormatError):
        decode_plan(cut(orjson.dumps(document), {"b"}))


def test_a_plan_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    document = encode_plan(plan())
    monkeypatch.setattr(parts, "LARGEST", len(document) - 1)
    assert cut(document, {"a"}) == document

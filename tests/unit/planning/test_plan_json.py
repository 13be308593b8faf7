"""Plans survive the way over Kafka, and nothing else gets through."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.planning.catalogs import NEAR, TWO

from tamis.errors import InputError
from tamis.planning import plan_text
from tamis.planning.build import build_plan
from tamis.planning.plan import Plan
from tamis.planning.plan_json import decode_plan, encode_plan
from tamis.planning.plan_text import LARGEST, MOST
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
    monkeypatch.setattr(plan_text, "MOST", 1)
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
    with pytest.raises(InputError, match=r"plan\.definitions\[0\]\.inputs\[1\]\.interval: expected a whole"):
        decode_plan(orjson.dumps(good))

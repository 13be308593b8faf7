"""Refusal of negative indexes in Avro values: fastavro counts them from the end, as Python does.

The value of an enum is written as the index of its symbol, and the value of a union as the index of its type
and the value. A negative index can only come from damaged bytes. fastavro would read it as another symbol or
type, and the reading would look valid.
"""

from __future__ import annotations

from typing import Any


def refuse_negative_indexes(parsed: Any, named: dict[str, Any]) -> Any:
    """The schema of a record for `fastavro.schemaless_reader`, which then raises KeyError for every index
    that isn't in the schema. It can't be used to write.

    `parsed` was returned by `fastavro.parse_schema`, `named` is its argument `named_schemas`. Both are
    changed: the symbols of an enum, and the types of a union, are found in a dict by their index.
    """
    done: set[int] = set()
    for node in (parsed, *named.values()):
        _change(node, done)
    return parsed


def _change(node: Any, done: set[int]) -> Any:
    """The form of a part of the schema in which indexes are looked up in a dict."""
    if isinstance(node, list):
        return {"type": "union", **{index: _change(part, done) for index, part in enumerate(node)}}
    if not isinstance(node, dict) or id(node) in done:
        return node
    done.add(id(node))
    if isinstance(node.get("symbols"), list):
        node["symbols"] = dict(enumerate(node["symbols"]))
    for field in node.get("fields", ()):
        if id(field) not in done:
            done.add(id(field))
            field["type"] = _change(field["type"], done)
    for name in ("type", "items", "values"):
        if name in node:
            node[name] = _change(node[name], done)
    return node

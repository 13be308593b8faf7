"""Hints for configuration files: the field, the kind or the value that a wrong one is most similar to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tamis.query.names import suggest

_Schema = Mapping[str, Any]


def mistake(fault: Mapping[str, Any], model: type[BaseModel]) -> str:
    """The message about one of pydantic's errors of a file, with a hint if something similar is known.

    Unknown fields, unknown kinds and unknown values have hints; other errors have pydantic's own message.

    >>> class Sink(BaseModel, extra="forbid"):
    ...     url: str = ""
    >>> mistake({"type": "extra_forbidden", "loc": ("ulr",), "msg": "", "ctx": {}}, Sink)
    "there is no such field; did you mean 'url'?"
    """
    context = fault.get("ctx") or {}
    match fault["type"]:
        case "extra_forbidden":
            *place, name = fault["loc"]
            known = _fields(model.model_json_schema(mode="validation"), place)
            return f"there is no such field; {suggest(str(name), known, _listed('fields', known))}"
        case "union_tag_invalid":
            known = _texts(str(context["expected_tags"]))
            field, tag = str(context["discriminator"]).strip("'"), str(context["tag"])
            return f"there is no {field} {tag!r}; {suggest(tag, known, _listed(f'{field}s', known))}"
        case _:
            # The prefix that pydantic sets before the message of a validator.
            return str(fault["msg"]).removeprefix("Value error, ")


def _listed(what: str, known: Sequence[str]) -> str:
    return f"the {what} are: {', '.join(known)}"


def _texts(listed: str) -> list[str]:
    """The texts of a list that pydantic has written.

    >>> _texts("'http', 'mqtt'")
    ['http', 'mqtt']
    """
    return [one.strip().strip("'") for one in listed.split(",")]


def _fields(whole: _Schema, place: Sequence[str | int]) -> list[str]:
    """The fields of the mappings that may stand at a place, by the JSON schema of the file."""
    found: list[_Schema] = [whole]
    for step in place:
        # A step that pydantic adds for one form of a union leads nowhere.
        found = [inner for schema in found for inner in _inside(schema, step, whole)] or found
    known = {name for schema in found for one in _forms(schema, whole) for name in one.get("properties", {})}
    return sorted(known)


def _inside(schema: _Schema, step: str | int, whole: _Schema) -> Iterator[_Schema]:
    """The schemas of the part of a value to which one step of a place leads."""
    for form in _forms(schema, whole):
        if isinstance(step, int):
            if "items" in form:
                yield form["items"]
        elif step in form.get("properties", {}):
            yield form["properties"][step]
        elif step in (mapping := form.get("discriminator", {}).get("mapping", {})):
            # The kind of a union is a step of its own.
            yield {"$ref": mapping[step]}


def _forms(schema: _Schema, whole: _Schema) -> Iterator[_Schema]:
    """The schema and its alternatives, with references followed."""
    if "$ref" in schema:
        yield from _forms(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return
    yield schema
    for word in ("anyOf", "allOf"):
        for one in schema.get(word, ()):
            yield from _forms(one, whole)

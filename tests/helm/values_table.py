"""Table of the chart's values, from the comments of values.yaml that begin with `--`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9]*):")
_COMMENT = re.compile(r" *# -- (?P<text>.*)")


class Value(NamedTuple):
    """A value with its comment; `default` is its value in values.yaml."""

    path: str
    default: Any
    text: str


def described(text: str) -> Iterator[Value]:
    """The values of values.yaml that have a comment.

    >>> list(described("edge:\\n  # -- Number of edges\\n  replicas: 2\\n"))
    [Value(path='edge.replicas', default=2, text='Number of edges')]
    """
    values = yaml.safe_load(text)
    path: list[tuple[int, str]] = []
    comment = None
    for line in text.splitlines():
        if match := _COMMENT.fullmatch(line):
            comment = match["text"]
        elif match := _KEY.match(line):
            indent = len(match["indent"])
            path = [(depth, key) for depth, key in path if depth < indent] + [(indent, match["key"])]
            if comment is not None:
                keys = [key for _, key in path]
                yield Value(".".join(keys), _at(values, keys), comment)
                comment = None


def leaves(values: Any, path: str = "") -> Iterator[str]:
    """The paths of all values that are not objects with keys.

    >>> list(leaves({"edge": {"replicas": 2, "config": {}}}))
    ['edge.replicas', 'edge.config']
    """
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path


def table(text: str) -> str:
    """The table in Markdown, a part for each part of values.yaml."""
    lines = ["| value | default | meaning |", "|---|---|---|"]
    lines += [f"| `{value.path}` | {_shown(value.default)} | {value.text} |" for value in described(text)]
    return "\n".join(lines) + "\n"


def _at(values: Any, keys: list[str]) -> Any:
    for key in keys:
        values = values[key]
    return values


def _shown(value: Any) -> str:
    return "" if value in ("", {}, []) else f"`{json.dumps(value)}`"

"""Paths to the value of a column in a reading: names with dots between, or in brackets, as in JSONPath.

`a.b` is the field `b` of the object in the field `a`. `["a.b"]` is the field whose name is `a.b`, and
`a["b.c"]` the field `b.c` of the object in `a`. `$` at the beginning is the reading itself. A path that is
written with dots alone may also be the whole name of a field: a reading that has this field is read so.

The grammar is that of the singular queries of RFC 9535 without elements of arrays, but names without brackets
may have all characters except dots and brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+) | \[\s*(?P<quoted> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )\s*\]""", re.VERBOSE
)
_ELEMENT = re.compile(r"\[\s*-?\d+\s*\]")
_SEVERAL = re.compile(r"\.\.|\.\*|\[\s*\*\s*\]|\[\s*\?|\[\s*-?\d*\s*:|\[[^\]]*,")
# What other languages of paths have, and names of fields hardly ever: JSON Pointer, templates, JMESPath,
# arrows of Postgres, and blanks at the ends.
_FOREIGN = re.compile(r"/|\s|@\.|.*(\{\{|\}\}|\$\{|->|\s$)", re.DOTALL)
_BETWEEN = re.compile(r"->>?|/|\.")
_ESCAPE = re.compile(r"""\\.|\"""")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path. `steps`: the names from the reading to the value. `whole`: `text` may also be the name of a
    field.
    """

    text: str
    steps: tuple[str, ...]
    whole: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of fields, or of columns of a table, that have the value itself, the first one first."""
        return (self.text,) if self.whole else self.steps if len(self.steps) == 1 else ()

    def values(self, readings: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The value in each reading; None where there is none."""
        if len(self.steps) == 1:
            return [reading.get(self.steps[0]) for reading in readings]
        if self.whole and any(self.text in reading for reading in readings):
            return [
                reading[self.text] if self.text in reading else _follow([reading], self.steps)[0]
                for reading in readings
            ]
        return _follow(readings, self.steps)

    def within(self, reading: Mapping[str, Any]) -> bool:
        """True if a reading has the field, also with a null in it."""
        inside: Any = reading
        for step in self.steps:
            if type(inside) is not dict or step not in inside:
                return self.whole and self.text in reading
            inside = inside[step]
        return True

    def cells(self, table: Mapping[str, Sequence[Any]]) -> Sequence[Any] | None:
        """The column of a table of Python values, also within objects; None if the table doesn't have it."""
        name = next((name for name in self.names if name in table), None)
        if name is not None:
            return table[name]
        first = table.get(self.steps[0])
        return None if first is None else _into(first, self.steps[1:])


def parsed(text: str) -> FieldPath:
    """The path of a text. Raises ValueError, with what would work, if it is none.

    >>> parsed("data.temp").steps, parsed("$.data['a.b']").steps
    (('data', 'temp'), ('data', 'a.b'))
    """
    if _is_foreign(text):
        raise _wrong(text)
    rooted = text.startswith(("$.", "$["))
    rest = text[1:] if rooted else text if text.startswith("[") else f".{text}"
    steps: list[str] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None or step["name"] == "*":
            raise _wrong(text)
        steps.append(step["name"] if step["quoted"] is None else _unquoted(step["quoted"], text))
        at = step.end()
    if not steps or text == "$":
        raise _wrong(text)
    dotted = len(steps) > 1 and not rooted and "[" not in text
    return FieldPath(text, tuple(steps), dotted)


@lru_cache(maxsize=4096)
def of_column(name: str) -> FieldPath:
    """The path that a column's name is; a name that is no path is the name of a field.

    >>> of_column("1-0:16.7.0").values([{"1-0:16.7.0": 5}, {"1-0:16": {"7": {"0": 6}}}])
    [5, 6]
    >>> of_column("temp [C]").steps
    ('temp [C]',)
    """
    try:
        return parsed(name)
    except ValueError:
        return FieldPath(name, (name,))


def _unquoted(quoted: str, text: str) -> str:
    """The name between quotes, with the escapes of JSON."""
    if quoted[0] == "'":
        inner = _ESCAPE.sub(lambda one: {"\\'": "'", '"': '\\"'}.get(one[0], one[0]), quoted[1:-1])
        quoted = f'"{inner}"'
    try:
        return str(json.loads(quoted))
    except ValueError:
        raise _wrong(text) from None


def _wrong(text: str) -> ValueError:
    named = f"if a field has this name, write [{json.dumps(text, ensure_ascii=False)}]"
    if _ELEMENT.search(text):
        return ValueError(
            f"{text!r} names an element of an array, which can't be read; send each element as a reading of"
            f" its own, or give its value a field; {named}"
        )
    if _SEVERAL.search(text):
        return ValueError(f"{text!r} names several values; name one field; {named}")
    if _is_foreign(text) and (dots := _with_dots(text)):
        return ValueError(f"{text!r} is no path to a field; write {dots!r}; {named}")
    return ValueError(
        f'{text!r} is no path to a field; write names with dots between (data.temp), and ["…"] for a name'
        f" with dots or brackets{f'; {named}' if text.strip('$') else ''}"
    )


def _is_foreign(text: str) -> bool:
    return "[" not in text and _FOREIGN.match(text) is not None


def _with_dots(text: str) -> str:
    """A path of another language with dots between its names.

    >>> _with_dots("/data/temp"), _with_dots("data->>'temp'"), _with_dots("{{ value.temp }}")
    ('data.temp', 'data.temp', 'value.temp')
    """
    names = _BETWEEN.split(text.strip().removeprefix("@").strip("${} "))
    return ".".join(bare for name in names if (bare := name.strip(" \t'\"")))


def _follow(readings: Sequence[Mapping[str, Any]], steps: Sequence[str]) -> list[Any]:
    return _into([reading.get(steps[0]) for reading in readings], steps[1:])


def _into(values: Sequence[Any], steps: Sequence[str]) -> list[Any]:
    for step in steps:
        values = [value.get(step) if type(value) is dict else None for value in values]
    return list(values)

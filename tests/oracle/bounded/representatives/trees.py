"""Expressions as trees, which are written as SQL and evaluated in Python.

NULL is None, and AND, OR and NOT have three values. Whole numbers are exact, and DOUBLEs are Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Mapping[str, Any]]  # of each alias, by column
Meaning = Callable[[Values], Any]


@dataclass(frozen=True)
class Tree:
    """A column (`alias`, `name`), a constant (`value`), or an operation on other trees."""

    operation: str
    parts: tuple[Tree, ...] = ()
    alias: str = ""
    name: str = ""
    value: Any = None

    def sql(self) -> str:
        """The expression as SQL."""
        if self.operation == "column":
            return f"{self.alias}.{self.name}"
        if self.operation == "constant":
            return _literal(self.value)
        template, _ = _OPERATIONS[self.operation]
        return template.format(*(one.sql() for one in self.parts))

    def meaning(self) -> Meaning:
        """The expression as a function."""
        alias, name, value = self.alias, self.name, self.value
        if self.operation == "column":
            return lambda values: values[alias][name]
        if self.operation == "constant":
            return lambda values: value
        _, function = _OPERATIONS[self.operation]
        return function([one.meaning() for one in self.parts])

    def columns(self) -> Iterator[tuple[str, str]]:
        """Alias and name of each column that is read."""
        if self.operation == "column":
            yield self.alias, self.name
        for one in self.parts:
            yield from one.columns()


def column(alias: str, name: str) -> Tree:
    """A column of a source."""
    return Tree("column", alias=alias, name=name)


def constant(value: Any) -> Tree:
    """A number or a text."""
    return Tree("constant", value=value)


def of(operation: str, *parts: Tree | int | float) -> Tree:
    """An operation; plain numbers are constants."""
    return Tree(operation, tuple(one if isinstance(one, Tree) else constant(one) for one in parts))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return f"({value})" if value < 0 else str(value)


def _strict(function: Callable[..., Any]) -> Callable[[list[Meaning]], Meaning]:
    """NULL if an argument is NULL."""

    def made(parts: list[Meaning]) -> Meaning:
        def meaning(values: Values) -> Any:
            arguments = [part(values) for part in parts]
            return None if None in arguments else function(*arguments)

        return meaning

    return made


def _skipping(function: Callable[..., Any]) -> Callable[[list[Meaning]], Meaning]:
    """The function of the arguments that aren't NULL; NULL without any."""

    def made(parts: list[Meaning]) -> Meaning:
        def meaning(values: Values) -> Any:
            arguments = [one for part in parts if (one := part(values)) is not None]
            return function(arguments) if arguments else None

        return meaning

    return made


def _decided(by: bool) -> Callable[[list[Meaning]], Meaning]:
    """OR (decided by True) or AND (decided by False)."""

    def made(parts: list[Meaning]) -> Meaning:
        def meaning(values: Values) -> Any:
            arguments = [part(values) for part in parts]
            return by if by in arguments else None if None in arguments else not by

        return meaning

    return made


def _case(parts: list[Meaning]) -> Meaning:
    condition, then, otherwise = parts
    return lambda values: then(values) if condition(values) is True else otherwise(values)


def _remainder(x: int, y: int) -> int | None:
    return None if y == 0 else int(math.fmod(x, y))


_OPERATIONS: dict[str, tuple[str, Callable[[list[Meaning]], Meaning]]] = {
    "+": ("({} + {})", _strict(lambda x, y: x + y)),
    "-": ("({} - {})", _strict(lambda x, y: x - y)),
    "*": ("({} * {})", _strict(lambda x, y: x * y)),
    "/": ("({} / {})", _strict(lambda x, y: None if y == 0 else float(x) / float(y))),
    "%": ("({} % {})", _strict(_remainder)),
    "<": ("{} < {}", _strict(lambda x, y: x < y)),
    "<=": ("{} <= {}", _strict(lambda x, y: x <= y)),
    ">": ("{} > {}", _strict(lambda x, y: x > y)),
    ">=": ("{} >= {}", _strict(lambda x, y: x >= y)),
    "=": ("{} = {}", _strict(lambda x, y: x == y)),
    "!=": ("{} != {}", _strict(lambda x, y: x != y)),
    "same": ("({}) = ({})", _strict(lambda x, y: x == y)),
    "abs": ("ABS({})", _strict(abs)),
    "sign": ("SIGN({})", _strict(lambda x: (x > 0) - (x < 0))),
    "floor": ("FLOOR({})", _strict(lambda x: float(math.floor(x)))),
    "least": ("LEAST({}, {})", _skipping(min)),
    "greatest": ("GREATEST({}, {})", _skipping(max)),
    "not": ("NOT ({})", _strict(lambda x: not x)),
    "and": ("({} AND {})", _decided(False)),
    "or": ("({} OR {})", _decided(True)),
    "case": ("CASE WHEN {} THEN {} ELSE {} END", _case),
    "null": ("{} IS NULL", lambda parts: lambda values: parts[0](values) is None),
    "known": ("{} IS NOT NULL", lambda parts: lambda values: parts[0](values) is not None),
}

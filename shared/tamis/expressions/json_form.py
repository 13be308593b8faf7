"""Expressions as JSON, as plans carry them over Kafka and HTTP.

    column    ["column", alias, name, type]
    literal   ["literal", type, value]          TIMESTAMP and INTERVAL in microseconds, null for NULL
    call      [operator, type, argument, …]     operators of the table of functions, types of `nodes`

Numbers don't change: a DOUBLE is a JSON number with a point or an exponent, an integer is one without. A
JSON parser that reads all numbers as doubles can't be used. The input comes from the network: everything is
checked, including types, depth and size.
"""

from __future__ import annotations

import math
from typing import Any

from tamis.errors import InputError
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import LARGEST_EXACT_INTEGER, Call, Column, Expr, Literal, Type
from tamis.expressions.signatures import check
from tamis.expressions.vectors import Value

MAX_DEPTH = 200  # evaluators recurse, and Python's limit of 1,000 frames includes the caller's
MAX_NODES = 10_000  # an IN list of 3,000 values fits; a batch over more would take seconds
MAX_TEXT = 10_000  # characters of one name or VARCHAR literal

_TYPES = {t.value: t for t in Type}


def to_json(expr: Expr) -> list[Any]:
    """The JSON form of `expr`, made of lists, str, int, float, bool and None.

    Raises InputError if `from_json` would refuse the result for its depth or size, or for a value that JSON
    lacks.
    """
    return _Writer().write(expr, 1)


def from_json(document: object) -> Expr:
    """The expression whose JSON form `document` (parsed JSON) is.

    Raises InputError, with the place as a path of list positions, for anything that `to_json` does not write.
    """
    return _Reader().read(document, ())


class _Budget:
    """Counts the nodes of one expression, and refuses an expression that is too deep or too large."""

    def __init__(self) -> None:
        self._nodes = 0

    def spend(self, depth: int, path: tuple[int, ...] = ()) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise _error(f"the expression is nested deeper than {MAX_DEPTH}", path[:8], "write it flatter")
        if self._nodes > MAX_NODES:
            raise _error(f"the expression has more than {MAX_NODES} parts", path, "split it")


class _Writer:
    def __init__(self) -> None:
        self._budget = _Budget()

    def write(self, expr: Expr, depth: int) -> list[Any]:
        self._budget.spend(depth)
        if isinstance(expr, Column):
            return ["column", expr.alias, expr.name, expr.type.value]
        if isinstance(expr, Literal):
            return ["literal", expr.type.value, _literal(expr.value, expr.type, ())]
        form: list[Any] = [expr.op, expr.type.value]
        for arg in expr.args:
            form.append(self.write(arg, depth + 1))
        return form


class _Reader:
    def __init__(self) -> None:
        self._budget = _Budget()

    def read(self, form: object, path: tuple[int, ...]) -> Expr:
        self._budget.spend(len(path) + 1, path)
        if not isinstance(form, list) or not form:
            raise _error(f"expected a list that begins with a word, found {_shown(form)}", path)
        head = form[0]
        if head == "column":
            self._length(form, 4, path)
            return Column(_text(form[1], (*path, 1)), _text(form[2], (*path, 2)), _type(form[3], (*path, 3)))
        if head == "literal":
            self._length(form, 3, path)
            type_ = _type(form[1], (*path, 1))
            return Literal(_literal(form[2], type_, (*path, 2)), type_)
        if not isinstance(head, str) or head not in FUNCTIONS:
            raise _error(f"unknown operator {_shown(head)}", (*path, 0))
        if len(form) < 3:
            raise _error(f"{head} has no arguments", path)
        type_ = _type(form[1], (*path, 1))
        args: list[Expr] = []
        for position in range(2, len(form)):
            args.append(self.read(form[position], (*path, position)))
        node = Call(head, tuple(args), type_)
        try:
            check(node)
        except InputError as error:
            raise _error(error.what, path) from None
        return node

    @staticmethod
    def _length(form: list[Any], expected: int, path: tuple[int, ...]) -> None:
        if len(form) != expected:
            raise _error(f"a {form[0]} has {expected} items, found {len(form)}", path)


def _type(item: object, path: tuple[int, ...]) -> Type:
    if not isinstance(item, str) or item not in _TYPES:
        raise _error(f"unknown type {_shown(item)}", path, "types are " + ", ".join(_TYPES))
    return _TYPES[item]


def _text(item: object, path: tuple[int, ...]) -> str:
    if not isinstance(item, str):
        raise _error(f"expected a string, found {_shown(item)}", path)
    if len(item) > MAX_TEXT:
        raise _error(f"a string of {len(item)} characters; at most {MAX_TEXT} are allowed", path)
    try:
        item.encode()
    except UnicodeEncodeError:
        raise _error("the string has half of a surrogate pair in it", path) from None
    return item


def _literal(item: object, type_: Type, path: tuple[int, ...]) -> Value:
    if item is None:
        return None
    if type_ is Type.VARCHAR:
        return _text(item, path)
    if type_ is Type.BOOLEAN:
        if isinstance(item, bool):
            return item
    elif isinstance(item, bool):
        pass
    elif type_.integral:
        if isinstance(item, int) and -(2**63) <= item < 2**63:
            return item
    elif isinstance(item, float):
        if math.isfinite(item):
            return item
    elif isinstance(item, int) and abs(item) <= LARGEST_EXACT_INTEGER:  # some writers shorten 5.0 to 5
        return float(item)
    raise _error(f"{_shown(item)} is not a value of type {type_}", path)


def _shown(item: object) -> str:
    """A short description of `item` for a message."""
    if isinstance(item, (list, dict)):
        return f"a {type(item).__name__} of {len(item)}"
    if isinstance(item, int) and not -(2**64) < item < 2**64:
        return "an integer of more than 64 bits"
    return repr(item[:40] if isinstance(item, str) else item)


def _error(what: str, path: tuple[int, ...], hint: str | None = None) -> InputError:
    return InputError(what, where="expression" + "".join(f"[{p}]" for p in path), hint=hint)

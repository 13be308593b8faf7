"""Expressions as Tamis SQL for people, with no more parentheses than the tree needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

import tamis.expressions.functions  # noqa: F401 - fills the table
from tamis.expressions.functions.entry import (
    ATOM,
    COMPARISON,
    CONCATENATION,
    FUNCTIONS,
    NOT,
    OR,
    SIGN,
    SUM,
)
from tamis.expressions.nodes import OPAQUE, Call, Column, Expr, Literal, Type
from tamis.expressions.python_functions import name_of

_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000), ("SECOND", 1_000_000))
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_RESERVED = frozenset(  # the keywords of SELECT in Tamis' dialect, and some of its statements
    """all and anti any as asc asof between by case check create cross current_date current_time
    current_timestamp desc distinct drop else end escape except exists false fetch filter from full
    group having ilike in inner intersect interval into is join lateral left like limit natural not null
    offset on or order outer over partition qualify range right rows select semi some then timestamp true
    union using values when where window with""".split()  # noqa: SIM905
)


def to_sql(expr: Expr, qualify: bool = True) -> str:
    """`expr` as SQL text. With `qualify` a column with an alias is written as a.temp, else as temp.

    >>> a, b = Column("a", "x", Type.INT), Column("a", "y", Type.INT)
    >>> to_sql(Call("*", (Call("-", (a, b), Type.INT), Literal(2, Type.INT)), Type.INT))
    '(a.x - a.y) * 2'
    """
    return _Text(qualify).text(expr, OR)


def identifier(name: str) -> str:
    """`name` in SQL, in quotes only if it needs them."""
    if _PLAIN.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class _Text:
    qualify: bool

    def text(self, expr: Expr, place: int) -> str:
        """`expr` in a place that needs a precedence of at least `place`."""
        if isinstance(expr, Column):
            name = identifier(expr.name)
            return f"{identifier(expr.alias)}.{name}" if self.qualify and expr.alias else name
        if isinstance(expr, Literal):
            text, binding = _literal(expr), ATOM
            if text.startswith("-"):
                binding = SIGN
        else:
            text, binding = self._call(expr)
        return f"({text})" if binding < place else text

    def _call(self, expr: Call) -> tuple[str, int]:
        op, args = expr.op, expr.args
        function = FUNCTIONS[op]
        binding = function.binding
        if op == "case":
            return self._case(args), ATOM
        if op in ("and", "or"):
            if len(args) == 1:
                return self.text(args[0], OR), OR
            return f" {op.upper()} ".join(self.text(arg, binding + 1) for arg in args), binding
        if op == "not":
            (arg,) = args
            if isinstance(arg, Call) and arg.op == "is_null":
                return self.text(arg.args[0], SUM) + " IS NOT NULL", COMPARISON
            return "NOT " + self.text(arg, NOT), NOT
        if op == "is_null":
            return self.text(args[0], SUM) + " IS NULL", binding
        if op == OPAQUE:
            return f"{identifier(name_of(expr))}({', '.join(self.text(arg, OR) for arg in args[2:])})", ATOM
        if function.cast:
            return f"CAST({self.text(args[0], OR)} AS {function.cast})", ATOM
        if op == "epoch":
            return f"date_part('epoch', {self.text(args[0], OR)})", ATOM
        if op == "like":
            text, pattern, *escape = (self.text(arg, CONCATENATION) for arg in args)
            return " ".join([text, "LIKE", pattern, *(f"ESCAPE {one}" for one in escape)]), binding
        if op in ("~", "neg"):
            return (function.symbol or op) + self.text(args[0], ATOM), binding
        if binding == ATOM:
            return f"{op}({', '.join(self.text(arg, OR) for arg in args)})", ATOM
        # Comparisons don't chain, a - (b - c) isn't a - b - c, and a sign on the right gets parentheses.
        left = self.text(args[0], binding + 1 if binding == COMPARISON else binding)
        right = self.text(args[1], binding + 1)
        if right.startswith("-") and binding > COMPARISON:
            right = f"({right})"
        return f"{left} {function.symbol or op} {right}", binding

    def _case(self, args: tuple[Expr, ...]) -> str:
        parts = ["CASE"]
        for condition, value in zip(args[:-1:2], args[1::2], strict=True):
            parts.append(f"WHEN {self.text(condition, OR)} THEN {self.text(value, OR)}")
        otherwise = args[-1]
        if not (isinstance(otherwise, Literal) and otherwise.value is None):
            parts.append("ELSE " + self.text(otherwise, OR))
        return " ".join([*parts, "END"])


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if literal.type is Type.INTERVAL:
        return interval(int(value))
    if literal.type is Type.TIMESTAMP:
        seconds, rest = divmod(int(value), 1_000_000)
        # Python's datetime ends with the year 9999; NumPy's doesn't.
        moment = str(np.datetime64(seconds, "s")).replace("T", " ")
        return f"TIMESTAMP '{_trimmed(f'{moment}.{rest:06}')}'"
    return repr(float(value)) if literal.type is Type.DOUBLE else str(value)


def interval(microseconds: int) -> str:
    """An INTERVAL of this length, in the largest unit in which it is an integer, else in seconds.

    >>> interval(90_000_000), interval(-120_000_000), interval(1_500_000)
    ("INTERVAL '90' SECOND", "INTERVAL '-2' MINUTE", "INTERVAL '1.5' SECOND")
    """
    for unit, length in _UNITS:
        if microseconds and microseconds % length == 0:
            return f"INTERVAL '{microseconds // length}' {unit}"
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    sign = "-" if microseconds < 0 else ""
    return f"INTERVAL '{sign}{_trimmed(f'{seconds}.{rest:06}')}' SECOND"


def _trimmed(text: str) -> str:
    """A decimal number without the zeros at its end."""
    return text.rstrip("0").rstrip(".") if "." in text else text

"""Alternatives of a condition with OR, each a conjunction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Call, Expr, Type, aliases

# A query may be split into so many conjunctions: each is decided and evaluated separately.
MOST = 64

Alternative = tuple[Expr, ...]
_DUAL = {"and": "or", "or": "and"}


def alternatives(expr: Expr) -> tuple[Alternative, ...] | None:
    """Conjunctions of conditions without AND and OR; `expr` is true where one of them is. None if there are
    more than `MOST`.
    """
    found: list[Alternative] = []
    for one in _expand(expr):
        found.append(one)
        if len(found) > MOST:
            return None
    return tuple(found)


def without_constants(split: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """The alternatives that can be true, each once, without their constant conditions: these belong to no
    source, so no source's tuples would be tested by them.

    >>> from tamis.expressions.nodes import Column, Literal
    >>> no, yes = (Literal(value, Type.BOOLEAN) for value in (False, True))
    >>> small = Call("<", (Column("s", "a", Type.INT), Literal(1, Type.INT)), Type.BOOLEAN)
    >>> without_constants([(no,), (small, yes), (small,)]) == ((small,),)
    True
    """
    possible = (one for one in split if all(aliases(part) or bool(holds(part, {}, 1)[0]) for part in one))
    return tuple(dict.fromkeys(tuple(part for part in one if aliases(part)) for one in possible))


def _expand(expr: Expr) -> Iterator[Alternative]:
    expr = _pushed(expr)
    if not isinstance(expr, Call) or expr.op not in _DUAL:
        yield (expr,)
    elif expr.op == "or":
        for arg in expr.args:
            yield from _expand(arg)
    else:
        first, rest = expr.args[0], expr.args[1:]
        if not rest:
            yield from _expand(first)
            return
        for head in _expand(first):
            for tail in _expand(Call("and", rest, Type.BOOLEAN)):
                yield (*head, *tail)


def _pushed(expr: Expr) -> Expr:
    """The condition with NOT moved inside AND and OR."""
    if isinstance(expr, Call) and expr.op == "not" and isinstance(expr.args[0], Call):
        inner = expr.args[0]
        if inner.op == "not":
            return _pushed(inner.args[0])
        if inner.op in _DUAL:
            return Call(
                _DUAL[inner.op], tuple(Call("not", (a,), Type.BOOLEAN) for a in inner.args), Type.BOOLEAN
            )
    return expr

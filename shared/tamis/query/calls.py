"""Calls of functions: those of SQL, and those of CREATE FUNCTION, which are inlined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tamis.expressions.nodes import Expr, substitute
from tamis.query import operators, refusals
from tamis.query.aggregates import FUNCTIONS as AGGREGATED
from tamis.query.context import Context, suggest
from tamis.query.limits import DEEPEST, LARGEST, oversize
from tamis.query.model import FunctionDef

if TYPE_CHECKING:
    from tamis.query.reading import Reader

# Name to the least and the greatest number of arguments.
BUILTINS = {
    "abs": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ln": (1, 1),
    "log10": (1, 1),
    "power": (2, 2),
    "least": (1, 100),
    "greatest": (1, 100),
}


def read_call(reader: Reader, node: exp.Expr) -> Expr | None:
    """What a call stands for; None where a mistake was reported."""
    context = reader.context
    quoted = isinstance(node.this, exp.Identifier)
    name = node.this.name if quoted else str(node.this).lower()
    nodes = node.expressions
    function = context.catalog.functions.get(name)
    if function is None and reader.aggregates is not None and name in AGGREGATED:
        return reader.aggregates.read(reader, node, name)
    if function is None and name not in BUILTINS:
        _unknown(context, node, name)
        return None
    args = reader.all_of(nodes)
    low, high = BUILTINS.get(name, (0, 0))
    if function is not None:
        low = high = len(function.parameters)
    if not low <= len(nodes) <= high:
        count = str(low) if low == high else f"{low} to {high}"
        plural = "" if count == "1" else "s"
        what = f"{name} takes {count} argument{plural}, not {len(nodes)}"
        context.error(what, node, _usage(name, function))
        return None
    if args is None:
        return None
    if name == "power":
        return reader.typed(node, operators.arithmetic, name, args[0], args[1])
    if function is None:
        return reader.typed(node, operators.function, name, args)
    return _inlined(reader, function, nodes, args)


def _unknown(context: Context, node: exp.Expr, name: str) -> None:
    if name in context.broken_functions:
        return
    refusal = refusals.function(name)
    if refusal is not None:
        context.error(refusal[0], node, refusal[1])
        return
    if name in context.later_functions:
        hint = f"move CREATE FUNCTION {name} in front of this statement"
    else:
        hint = suggest(name, [*BUILTINS, *context.catalog.functions])
    context.error(f"there is no function '{name}'", node, hint)


def _usage(name: str, function: FunctionDef | None) -> str:
    if function is None:
        return {"power": "write power(base, exponent)"}.get(name, f"write {name}(x)")
    return f"write {name}({', '.join(parameter for parameter, _ in function.parameters)})"


def _inlined(
    reader: Reader, function: FunctionDef, nodes: Sequence[exp.Expr], args: Sequence[Expr]
) -> Expr | None:
    reader.context.used_functions.add(function.name)
    bound: dict[str, Expr] = {}
    for (parameter, kind), node, arg in zip(function.parameters, nodes, args, strict=True):
        what = f"the parameter {parameter} of {function.name}"
        fitted = reader.typed(node, operators.assigned, arg, kind, what)
        if fitted is not None:
            bound[parameter] = fitted
    if len(bound) < len(args):
        return None
    result = substitute(function.body, lambda column: bound[column.name])
    if nodes and oversize(result):
        reader.context.error(
            f"inlined, {function.name} has more than {LARGEST} parts or {DEEPEST} levels here",
            nodes[0],
            "call fewer functions inside each other",
        )
        return None
    return result

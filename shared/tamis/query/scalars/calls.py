"""Calls of scalar functions: the built-in ones, and those of CREATE FUNCTION, which are inlined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sqlglot import exp

from tamis.declarations.definitions import FunctionDef
from tamis.expressions.nodes import Expr, substitute
from tamis.query.context import Context
from tamis.query.functions import SCALAR_FUNCTIONS
from tamis.query.scalars.functions import built_in
from tamis.query.scalars.operators import assigned, checked
from tamis.query.syntax.limits import DEEPEST, LARGEST, oversize
from tamis.query.unsupported import USE_WINDOWS, function_of_others, unsupported_function
from tamis.wording.names import suggest


def called_name(node: exp.Expr) -> str:
    """The name of the function in a call, folded to lower case unless quoted."""
    quoted = isinstance(node.this, exp.Identifier)
    return node.this.name if quoted else str(node.this).lower()


def resolve_call(
    context: Context,
    node: exp.Expr,
    arguments: Callable[[Sequence[exp.Expr]], list[Expr] | None],
    aggregates: Collection[str] = (),
) -> Expr | None:
    """The expression for a call; None if a mistake was reported.

    `arguments` resolves the arguments. `aggregates` are the aggregates that the clause also allows, for
    hints.
    """
    name = called_name(node)
    nodes = node.expressions
    function = context.catalog.functions.get(name)
    if function is None and name not in SCALAR_FUNCTIONS:
        _unknown(context, node, name, aggregates)
        return None
    args = arguments(nodes)
    least = most = 0 if function is None else len(function.parameters)
    if function is None:
        least, most = SCALAR_FUNCTIONS[name].arguments
    if not least <= len(nodes) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        plural = "" if count == "1" else "s"
        what = f"{name} takes {count} argument{plural}, not {len(nodes)}"
        context.error(what, node, _usage(name, function))
        return None
    if args is None:
        return None
    if function is None:
        return checked(context, node, built_in, SCALAR_FUNCTIONS[name], args)
    return _inlined(context, function, nodes, args)


def _unknown(context: Context, node: exp.Expr, name: str, aggregates: Collection[str]) -> None:
    what = f"there is no function '{name}'"
    if name in context.broken_functions and what not in context.reported:
        return
    refusal = unsupported_function(name)
    if refusal is None and name not in context.later_functions and "function" not in context.incomplete:
        refusal = function_of_others(name)
    if refusal is not None:
        if name in ("hop", "tumble"):
            context.error_once(refusal[0], node, refusal[1], USE_WINDOWS)
        else:
            context.error_once(refusal[0], node, refusal[1], f"{refusal[0]}: {context.source(node)}")
        return
    if name in context.later_functions:
        hint = f"move CREATE FUNCTION {name} in front of this statement"
    elif "function" in context.incomplete:
        return
    else:
        hint = suggest(name, [*SCALAR_FUNCTIONS, *context.catalog.functions, *aggregates])
    context.broken_functions.add(name)
    context.error_once(what, node, hint)


def _usage(name: str, function: FunctionDef | None) -> str:
    if function is None:
        return "write " + SCALAR_FUNCTIONS[name].usage.format(name=name)
    return f"write {name}({', '.join(parameter for parameter, _ in function.parameters)})"


def _inlined(
    context: Context, function: FunctionDef, nodes: Sequence[exp.Expr], args: Sequence[Expr]
) -> Expr | None:
    context.called_functions.add(function.name)
    by_parameter: dict[str, Expr] = {}
    for (parameter, type_), node, arg in zip(function.parameters, nodes, args, strict=True):
        what = f"the parameter {parameter} of {function.name}"
        converted = checked(context, node, assigned, arg, type_, what)
        if converted is not None:
            by_parameter[parameter] = converted
    if len(by_parameter) < len(args):
        return None
    result = substitute(function.body, lambda column: by_parameter[column.name])
    if nodes and oversize(result):
        context.error(
            f"{function.name} is too large once it is inlined: more than {LARGEST} parts or {DEEPEST} levels",
            nodes[0],
            "call fewer functions inside each other",
        )
        return None
    return result

"""Calls of scalar functions: the built-in ones, and those of CREATE FUNCTION, which are inlined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sqlglot import exp

from tamis.expressions.nodes import Expr, substitute
from tamis.query.context import Context
from tamis.query.functions import SCALAR_FUNCTIONS
from tamis.query.model import FunctionDef
from tamis.query.names import suggest
from tamis.query.scalars import bits, operators, roundings, texts, times
from tamis.query.scalars.reporting import checked
from tamis.query.syntax.limits import DEEPEST, LARGEST, oversize
from tamis.query.unsupported import USE_WINDOWS, function_of_others, unsupported_function

_USAGES = {
    "power": "write power(base, exponent)",
    "mod": "write mod(number, divisor), or number % divisor",
    "bit_and": "write bit_and(x, y), or x & y",
    "bit_or": "write bit_or(x, y), or x | y",
    "xor": "write xor(x, y)",
    "round": "write round(x), or round(x, 2) for two digits",
    "ifnull": "write ifnull(value, other)",
    "nullif": "write nullif(value, other)",
    "substring": "write substring(text, start, length)",
    "substr": "write substr(text, start, length)",
    "date_part": "write date_part('hour', time)",
    "date_trunc": "write date_trunc('hour', time)",
    "to_timestamp": "write to_timestamp(seconds)",
}


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
    least, most = SCALAR_FUNCTIONS.get(name, (0, 0))
    if function is not None:
        least = most = len(function.parameters)
    if not least <= len(nodes) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        plural = "" if count == "1" else "s"
        what = f"{name} takes {count} argument{plural}, not {len(nodes)}"
        context.error(what, node, _usage(name, function))
        return None
    if args is None:
        return None
    if function is None:
        return checked(context, node, _built_in, name, args)
    return _inlined(context, function, nodes, args)


def _built_in(name: str, args: Sequence[Expr]) -> Expr:
    match name:
        case "power":
            return operators.arithmetic(name, args[0], args[1])
        case "mod":
            return roundings.remainder(args[0], args[1])
        case "ceiling":
            return roundings.rounded("ceil", args)
        case "floor" | "ceil" | "trunc" | "round" | "sign":
            return roundings.rounded(name, args)
        case "coalesce" | "ifnull":
            return roundings.coalesce(args)
        case "nullif":
            return roundings.nullif(args[0], args[1])
        case "concat":
            return texts.concat(args)
        case "date_part":
            return times.part(times.constant_name(args[0], "the field of date_part"), args[1])
        case "date_trunc":
            return times.truncated(args[0], args[1])
        case "to_timestamp":
            return times.from_seconds(args[0])
        case "bit_and" | "bit_or" | "xor":
            return bits.operation(bits.BIT_FUNCTIONS[name], args)
        case _ if name in texts.TEXT_FUNCTIONS:
            return texts.function(name, args)
        case _:
            return operators.function(name, args)


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
        return _USAGES.get(name, f"write {name}(x)")
    return f"write {name}({', '.join(parameter for parameter, _ in function.parameters)})"


def _inlined(
    context: Context, function: FunctionDef, nodes: Sequence[exp.Expr], args: Sequence[Expr]
) -> Expr | None:
    context.called_functions.add(function.name)
    by_parameter: dict[str, Expr] = {}
    for (parameter, type_), node, arg in zip(function.parameters, nodes, args, strict=True):
        what = f"the parameter {parameter} of {function.name}"
        converted = checked(context, node, operators.assigned, arg, type_, what)
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

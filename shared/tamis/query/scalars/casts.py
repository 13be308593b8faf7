"""CAST: the types that can be named, and the conversions between them.

A value that doesn't fit into the type becomes NULL, as by TRY_CAST: a stream can't fail at one reading.
"""

from __future__ import annotations

from sqlglot import exp

from tamis.expressions.nodes import Call, Expr, Literal, Type
from tamis.query.functions import DAY, TIME_OF_DAY
from tamis.query.scalars import operators
from tamis.query.scalars.operators import TypeMismatch, converted, is_null
from tamis.wording.names import suggest

_TYPES = {
    "boolean": Type.BOOLEAN,
    "bool": Type.BOOLEAN,
    "int": Type.INT,
    "integer": Type.INT,
    "int4": Type.INT,
    "bigint": Type.BIGINT,
    "int8": Type.BIGINT,
    "double": Type.DOUBLE,
    "float8": Type.DOUBLE,
    "varchar": Type.VARCHAR,
    "text": Type.VARCHAR,
    "string": Type.VARCHAR,
    "timestamp": Type.TIMESTAMP,
}
_WRITE = "write CAST(x AS INT), BIGINT, DOUBLE, BOOLEAN or VARCHAR"
_OTHER = {
    **dict.fromkeys(("decimal", "numeric", "dec"), "write round(x, 2) for a number with two digits"),
    **dict.fromkeys(("float", "real", "float4"), "write DOUBLE, which has 64 bits"),
    **dict.fromkeys(("smallint", "tinyint", "int2"), "write INT"),
    "time": TIME_OF_DAY,
    "date": DAY,
}


def named_type(node: exp.Expr) -> Type:
    """The type after AS. Raises `TypeMismatch` for a type that Tamis doesn't have."""
    kind = node.args.get("kind")
    name = str(kind.name if isinstance(kind, exp.Identifier) else node.sql()).lower()
    if name not in _TYPES:
        hint = _OTHER.get(name) or suggest(name, _TYPES, _WRITE)
        raise TypeMismatch(f"CAST to {name.upper()} is not supported", hint=hint)
    if node.expressions:
        raise TypeMismatch(f"{name.upper()} takes no length", hint=f"write CAST(x AS {name.upper()})")
    return _TYPES[name]


def cast(expr: Expr, wanted: Type) -> Expr:
    """`expr` converted to `wanted`. Raises `TypeMismatch` if there is no such conversion."""
    if is_null(expr):
        return Literal(None, wanted)
    if expr.type is wanted and (wanted is not Type.INT or isinstance(expr, Literal)):
        return expr
    match expr.type, wanted:
        case (Type.INT | Type.BIGINT, Type.DOUBLE):
            return converted(expr, Type.DOUBLE)
        case (Type.INT, Type.BIGINT):
            return expr
        case (Type.INT | Type.BIGINT | Type.DOUBLE, Type.INT):  # the sum of two INTs may not be an INT
            return Call("to_int", (expr,), Type.INT)
        case (Type.DOUBLE, Type.BIGINT):
            return Call("to_bigint", (expr,), Type.BIGINT)
        case (Type.INT | Type.BIGINT | Type.DOUBLE, Type.BOOLEAN):
            return operators.compare("!=", expr, Literal(0, Type.INT))
        case (Type.BOOLEAN, Type.INT | Type.BIGINT | Type.DOUBLE):
            one, zero = (converted(Literal(n, Type.INT), wanted) for n in (1, 0))
            return operators.case([(expr, one), (operators.logic("not", [expr]), zero)], None)
        case (Type.VARCHAR, Type.TIMESTAMP) if isinstance(expr, Literal):
            return converted(expr, Type.TIMESTAMP)
        case (Type.VARCHAR, Type.DOUBLE):
            return Call("to_double", (expr,), Type.DOUBLE)
        case (Type.VARCHAR, Type.BIGINT):
            return Call("to_whole", (expr,), Type.BIGINT)
        case (Type.VARCHAR, Type.INT):
            return Call("to_int", (Call("to_whole", (expr,), Type.BIGINT),), Type.INT)
        case (Type.TIMESTAMP, Type.VARCHAR):
            return Call("time_to_varchar", (expr,), Type.VARCHAR)
        case (Type.BOOLEAN | Type.INT | Type.BIGINT | Type.DOUBLE, Type.VARCHAR):
            return Call("to_varchar", (expr,), Type.VARCHAR)
    hint = _WRITE
    if expr.type in (Type.TIMESTAMP, Type.INTERVAL) and wanted.numeric:
        hint = "write EXTRACT(EPOCH FROM x) for seconds"
    if wanted is Type.TIMESTAMP and expr.type.numeric:
        hint = "write to_timestamp(seconds)"
    raise TypeMismatch(f"{expr.type} can't be cast to {wanted}", hint=hint)

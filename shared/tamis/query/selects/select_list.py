"""The columns of SELECT: expressions, `*`, and the names of the result's columns."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tamis.expressions.nodes import Expr
from tamis.query.context import Context
from tamis.query.model import Output
from tamis.query.scalars.resolution import ExpressionResolver
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.cursor import LONGEST_NAME, name_of


@dataclass(frozen=True)
class _Item:
    """A column of SELECT. `name` is None if it has none, `expr` if it has a mistake."""

    node: exp.Expr
    name: str | None
    expr: Expr | None


def resolve_outputs(
    context: Context, resolver: ExpressionResolver, scope: FromScope, node: exp.Select
) -> tuple[Output, ...] | None:
    """The columns of SELECT; None if a mistake was reported."""
    items = [item for part in node.expressions for item in _items(context, resolver, scope, part)]
    if not items:
        context.error("SELECT has no column", node, "write SELECT column, … FROM stream")
    outputs: list[Output] = []
    taken = {item.name for item in items if item.name is not None}
    seen: set[str] = set()
    valid_names = True
    for item in items:
        if item.name is not None and len(item.name) > LONGEST_NAME:
            what = f"the name of a column can have at most {LONGEST_NAME} characters"
            context.error(what, item.node, "choose a shorter name")
            valid_names = False
        if item.name is not None and item.name in seen:
            hint = f"rename one of them with AS, such as AS other_{item.name}"
            context.error(f"two columns of SELECT have the name '{item.name}'", item.node, hint)
            valid_names = False
        name = item.name if item.name is not None else _default_name(item.node, taken)
        seen.add(name)
        taken.add(name)
        if item.expr is not None:
            outputs.append(Output(name, item.expr))
    return tuple(outputs) if items and len(outputs) == len(items) and valid_names else None


def _items(context: Context, resolver: ExpressionResolver, scope: FromScope, node: exp.Expr) -> list[_Item]:
    """One item of the syntax tree; several for `*`."""
    star = node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else node
    if isinstance(star, exp.Star):
        return _star(context, scope, node)
    if isinstance(node, exp.Alias):
        return [_Item(node, name_of(node.args["alias"]).text, resolver.resolve(node.this))]
    name = name_of(node.this).text if isinstance(node, exp.Column) else None
    return [_Item(node, name, resolver.resolve(node))]


def _star(context: Context, scope: FromScope, node: exp.Expr) -> list[_Item]:
    """The columns that `*` or `alias.*` stands for."""
    star = node.this if isinstance(node, exp.Column) else node
    if any(star.args.values()):
        what = "* with EXCEPT, REPLACE or RENAME is not supported"
        context.error(what, node, "write the names of the columns instead of *")
        return [_Item(node, None, None)]
    items, merged = scope.items, scope.merged
    table = node.args.get("table")
    if table is not None:
        merged = frozenset()
        alias = name_of(table).text
        items = tuple(item for item in items if item.alias == alias)
        if not items:
            scope.report_unknown_alias(context, node, alias)
    if not items or any(item.columns is None for item in items):
        return [_Item(node, None, None)]
    return [
        _Item(node, name, expr)
        for item in items
        for name, expr in (item.columns or {}).items()
        if (item.alias, name) not in merged
    ]


def _default_name(node: exp.Expr, taken: set[str]) -> str:
    """The name of a column without AS, as in Postgres; with a number after it if it is taken."""
    inner = node
    while isinstance(inner, exp.Paren | exp.Filter | exp.WithinGroup | exp.Cast):
        inner = inner.this
    if isinstance(inner, exp.Column) and inner is not node:
        return _numbered(name_of(inner.this).text, taken)
    if isinstance(inner, exp.Anonymous):
        base = (inner.this.name if isinstance(inner.this, exp.Identifier) else str(inner.this)).lower()
    else:
        base = "case" if isinstance(inner, exp.Case) else "?column?"
        base = "extract" if isinstance(inner, exp.Extract) else base
    return _numbered(base, taken)


def _numbered(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name

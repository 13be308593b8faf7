"""JOIN … USING (column, …): equalities of the columns of the joined stream with those of an earlier one."""

from __future__ import annotations

from sqlglot import exp

from tamis.query.context import Context
from tamis.query.names import suggest
from tamis.query.selects.scope import FromScope
from tamis.query.syntax.dialect import span
from tamis.query.syntax.identifiers import name_of


def equalities(context: Context, join: exp.Expr, scope: FromScope) -> list[exp.Expr]:
    """The conditions that USING of the last item of FROM stands for. From then on, an unqualified name of
    these columns means that of the earlier stream. Names that aren't known are reported.
    """
    *earlier, joined = scope.items
    found: list[exp.Expr] = []
    seen: set[str] = set()
    for column in join.args.get("using") or []:
        name = name_of(column).text
        if name in seen:
            context.error_once(f"'{name}' stands twice in USING", column, "leave one of them out")
            continue
        seen.add(name)
        if any(item.columns is None for item in scope.items):
            continue
        having = [item for item in earlier if name in (item.columns or {})]
        having = [item for item in having if (item.alias, name) not in scope.merged]
        if not having or name not in (joined.columns or {}):
            where = "the stream that is joined" if having else "no stream before this JOIN"
            what = f"{where} has no column '{name}'" if having else f"{where} has a column '{name}'"
            known = (
                joined.columns or {} if having else [one for item in earlier for one in item.columns or {}]
            )
            context.error_once(what, column, suggest(name, known))
        elif len(having) > 1:
            choices = " or ".join(f"{item.alias}.{name} = {joined.alias}.{name}" for item in having)
            what = f"'{name}' is ambiguous: several streams before this JOIN have this column"
            context.error(what, column, f"write ON {choices}")
        else:
            scope.merged.add((joined.alias, name))
            found.append(_equality(column, having[0].alias, joined.alias, name))
    return found


def _equality(place: exp.Expr, left: str, right: str, name: str) -> exp.Expr:
    sides = [
        exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
        for alias in (left, right)
    ]
    node = exp.EQ(this=sides[0], expression=sides[1])
    for part in (node, *sides):
        part.meta["span"] = span(place)
    node.meta["shown"] = f"{left}.{name} = {right}.{name}"
    return node

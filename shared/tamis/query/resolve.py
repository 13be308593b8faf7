"""From a SELECT to a `Query`: sources, conjuncts and outputs over base streams.

Derived streams are inlined: their WHERE becomes conjuncts of the reading query on the reading alias, and
their columns stand for what their SELECT says. The streams of one that joins are called `reading
alias.alias`. WHERE and ON are one conjunction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from tamis.expressions.nodes import Column, Expr, substitute
from tamis.query import refusals, unions, windows
from tamis.query.aggregates import Aggregates, grouping
from tamis.query.context import Context, Name, name_of, suggest
from tamis.query.dialect import span
from tamis.query.model import Conjunct, DerivedDef, Output, Query, Source, StreamDef, TableDef
from tamis.query.reading import Reader, flat

_READ = ("expressions", "from_", "joins", "where")
_TIMELESS = ("distinct", "group", "having")  # executed over streams without time; the last two of windows

# A join of more streams than this has no reader; the shortest paths of its time bounds are cubic in them.
MOST_SOURCES = 16


@dataclass
class Bound:
    """A stream in FROM. `columns` None: its own definition has a mistake, nothing is known about it.
    `sources`: several of a derived stream that joins; none: there is a mistake in FROM.
    """

    alias: str
    name: str
    columns: dict[str, Expr] | None
    sources: tuple[Source, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    offset: int = 0


@dataclass
class Sources:
    """The scope of a query: its streams in the order of FROM; `visible` of them are joined so far."""

    bound: list[Bound] = field(default_factory=list)
    visible: int = 0
    named: frozenset[str] = frozenset()  # names that SELECT gives by AS

    @property
    def aliases(self) -> set[str]:
        """What is called something already."""
        return {alias for b in self.bound for alias in (b.alias, *(source.alias for source in b.sources))}

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """See `Scope`."""
        if table is not None:
            return self._qualified(context, node, table, name)
        seen = self.bound[: self.visible]
        found = [bound for bound in seen if bound.columns is not None and name.text in bound.columns]
        if any(bound.columns is None for bound in self.bound):
            return None
        if len(found) == 1:
            return (found[0].columns or {})[name.text]
        if found:
            choices = " or ".join(f"{bound.alias}.{name.text}" for bound in found)
            context.error(f"'{name.text}' is a column of several streams", node, f"write {choices}")
        elif name.text in self.named:
            hint = "repeat the expression: what AS names isn't known in WHERE and ON"
            context.error(f"no stream has a column '{name.text}'", node, hint)
        else:
            names = [column for bound in seen for column in bound.columns or {}]
            context.error(f"no stream has a column '{name.text}'", node, suggest(name.text, names))
        return None

    def _qualified(self, context: Context, node: exp.Expr, table: Name, name: Name) -> Expr | None:
        for index, bound in enumerate(self.bound):
            if bound.alias != table.text:
                continue
            if index >= self.visible:
                hint = "move the condition into a later ON, or into WHERE"
                context.error(f"'{table.text}' isn't joined yet here", node, hint)
                return None
            if bound.columns is None:
                return None
            if name.text not in bound.columns:
                what = f"'{bound.alias}' has no column '{name.text}'"
                context.error(what, node, suggest(name.text, bound.columns))
                return None
            return bound.columns[name.text]
        if any(not bound.alias for bound in self.bound):
            return None
        renamed = [bound.alias for bound in self.bound if bound.name == table.text]
        hint = (
            f"here it is called '{renamed[0]}'"
            if renamed
            else suggest(table.text, [b.alias for b in self.bound])
        )
        context.error(f"FROM has no stream called '{table.text}'", node, hint)
        return None


def resolve(context: Context, node: exp.Expr, offset: int) -> Query | None:
    """The query that a SELECT stands for; None where mistakes were reported. `offset` is where it begins."""
    if isinstance(node, exp.SetOperation):
        return unions.resolve_union(context, node, offset, _resolve_select)
    return _resolve_select(context, node, offset)


def _resolve_select(context: Context, node: exp.Expr, offset: int) -> Query | None:
    if not isinstance(node, exp.Select):
        context.error(
            "this isn't a SELECT", offset, "write SELECT … FROM … WHERE …, without parentheses around it"
        )
        return None
    complete = _clauses(context, node, offset)
    sources = Sources()
    conditions = _from(context, node, sources, offset)
    sources.named = frozenset(
        name_of(a.args["alias"]).text for a in node.expressions if isinstance(a, exp.Alias)
    )
    conjuncts = [conjunct for bound in sources.bound for conjunct in bound.conjuncts]
    reader = Reader(context, sources)
    for clause, condition, visible in conditions:
        sources.visible = visible
        parts = flat(condition, exp.And)
        read = [(part, reader.condition(part, f"what stands in {clause}")) for part in parts]
        conjuncts += [
            Conjunct(expr, context.source(part), context.text.position(span(part)[0]))
            for part, expr in read
            if expr is not None
        ]
        complete = complete and all(expr is not None for _, expr in read)
    sources.visible, sources.named = len(sources.bound), frozenset()
    known = all(bound.sources for bound in sources.bound)
    timeless, in_time = _kind(context, sources, node) if known else (False, False)
    every = [(source, bound.offset) for bound in sources.bound for source in bound.sources]
    offsets = [offset for _, offset in every]
    in_windows = known and any(source.window is not None for source, _ in every)
    aggregates = Aggregates() if timeless or in_windows else None
    reader = Reader(context, sources, aggregates)
    outputs = _outputs(context, reader, sources, node)
    complete = _timed_clauses(context, node, aggregates is not None) and complete
    if outputs is None or not complete or not known:
        if known and aggregates is not None:
            grouping(context, reader, node, aggregates, ())  # for its own mistakes
        return None
    distinct = node.args.get("distinct")
    if distinct is not None and not _eliminates(context, distinct, timeless or in_time):
        return None
    grouped = None
    if aggregates is not None and (aggregates.found or node.args.get("group") or node.args.get("having")):
        if in_windows and not windows.grouped(context, reader, node, aggregates, offsets):
            return None
        grouped = grouping(context, reader, node, aggregates, outputs)
        if grouped is not None and distinct is not None:
            hint = "leave DISTINCT out: each group has one row at a time"
            context.error("SELECT DISTINCT with aggregates isn't executed", distinct, hint)
        if grouped is None or distinct is not None:
            return None
    query = Query(
        tuple(source for source, _ in every),
        tuple(conjuncts),
        outputs,
        distinct is not None,
        timeless,
        grouped,
        (),
        in_time,
    )
    fits = windows.check(context, query, offsets)
    return query if fits else None


def _kind(context: Context, sources: Sources, node: exp.Expr) -> tuple[bool, bool]:
    """Whether no stream of FROM has event time, and whether the query is evaluated in time: with tables, or
    streams with and without event time, or DISTINCT over streams with it.
    """
    named = [(source, b.offset) for b in sources.bound for source in b.sources]
    streams = [context.catalog.streams.get(source.stream) for source, _ in named]
    if named and not any(streams):
        hint = "join a stream with it, or read the file"
        context.error("a query reads at least one stream, not tables alone", named[0][1], hint)
        return False, False
    timed = [stream.time is not None for stream in streams if stream is not None]
    windowed = any(source.window is not None for source, _ in named)
    mixed = None in streams or len(set(timed)) > 1
    if windowed:
        return False, False
    if not any(timed) and not mixed:
        return True, False
    return False, mixed or node.args.get("distinct") is not None


def _eliminates(context: Context, distinct: exp.Expr, executed: bool) -> bool:
    """Is DISTINCT executed here?"""
    if executed and distinct.args.get("on") is None:
        return True
    what, hint = refusals.DISTINCT if executed else refusals.WINDOWED_DISTINCT
    context.error(what, distinct, hint)
    return False


def _timed_clauses(context: Context, node: exp.Select, aggregated: bool) -> bool:
    """Refuse the clauses that are executed with aggregates only, where there can't be any; whether there was
    none."""
    refused = False
    for key in _TIMELESS[1:]:
        clause = node.args.get(key)
        if clause and not aggregated:
            context.error(refusals.CLAUSES[key][0], clause, refusals.CLAUSES[key][1])
            refused = True
    return not refused


def _clauses(context: Context, node: exp.Select, offset: int) -> bool:
    """Refuse, one by one, the clauses that aren't executed; whether there was none."""
    refused = False
    for key, clause in node.args.items():
        if not clause or key in (*_READ, *_TIMELESS):
            continue
        what, hint = refusals.CLAUSES.get(key, (f"{key.strip('_').upper()} isn't executed", "leave it out"))
        place = clause[0] if isinstance(clause, list) else clause
        context.error(what, place if isinstance(place, exp.Expr) else offset, hint)
        refused = True
    return not refused


def _from(
    context: Context, node: exp.Select, sources: Sources, offset: int
) -> list[tuple[str, exp.Expr, int]]:
    """Bind the streams of FROM; return the conditions of ON and WHERE, each with how many streams it sees."""
    conditions: list[tuple[str, exp.Expr, int]] = []
    clause = node.args.get("from_")
    if clause is None:
        context.error("this SELECT has no FROM", offset, "write SELECT … FROM stream")
    else:
        _bind(context, clause.this, sources)
    for join in node.args.get("joins") or []:
        _join(context, join)
        _bind(context, join.this, sources)
        if join.args.get("on") is not None:
            conditions.append(("ON", join.args["on"], len(sources.bound)))
    if node.args.get("where") is not None:
        conditions.append(("WHERE", node.args["where"].this, len(sources.bound)))
    return conditions


def _join(context: Context, join: exp.Expr) -> None:
    """Refuse what isn't an inner join with ON, a cross join or a comma."""
    method, side, kind = (str(join.args.get(key) or "") for key in ("method", "side", "kind"))
    if kind in ("SEMI", "ANTI"):
        context.error(f"{kind} JOIN isn't executed", join, "write JOIN … ON")
    elif side or kind == "OUTER":
        context.error(
            f"outer joins ({side or kind} JOIN) are refused", join, "write JOIN … ON, which is an inner join"
        )
    elif method:
        context.error(f"{method} JOIN isn't executed", join, "write JOIN … ON with each condition")
    elif join.args.get("using"):
        context.error("JOIN … USING isn't executed", join, "write JOIN … ON a.column = b.column")
    elif kind == "CROSS" and join.args.get("on") is not None:
        context.error("CROSS JOIN takes no ON", join, "write JOIN … ON")
    elif kind != "CROSS" and join.args.get("on") is None and context.text.text[span(join)[0]] != ",":
        context.error("this JOIN has no ON", join, "write JOIN … ON condition")


def _bind(context: Context, table: exp.Expr, sources: Sources) -> None:
    """Add one stream of FROM to the scope."""
    bound = _stream(context, table)
    if bound is None:
        alias = table.args.get("alias")
        bound = Bound(
            name_of(alias.this).text if alias is not None and alias.this is not None else "", "", None
        )
    elif {bound.alias, *(s.alias for s in bound.sources)} & sources.aliases:
        hint = f"name one of them: {bound.name} AS other"
        context.error(f"two streams in FROM are called '{bound.alias}'", table, hint)
        bound.columns = None
    bound.offset = span(table)[0]
    sources.bound.append(bound)
    sources.visible = len(sources.bound)
    count = sum(max(1, len(other.sources)) for other in sources.bound)
    if count > MOST_SOURCES >= count - max(1, len(bound.sources)):
        context.error(f"a query reads at most {MOST_SOURCES} streams", table, "join fewer streams")
    for join in table.args.get("joins") or []:
        context.error("joins inside joins aren't executed", join, "write one JOIN … ON after the other")


def _stream(context: Context, table: exp.Expr) -> Bound | None:
    if not isinstance(table, exp.Table):
        what, hint = refusals.EXPRESSIONS.get(
            type(table), ("this isn't a stream", "write the name of a stream")
        )
        context.error(what, table, hint)
        return None
    window = None
    named: exp.Expr | None = table.this
    if isinstance(named, exp.Anonymous):
        called = str(named.this).lower()
        if called not in windows.USAGE:
            refused = refusals.function(called) or (f"{called}(…) isn't a stream", "write a stream's name")
            context.error(refused[0], table, refused[1])
            return None
        window = windows.read(context, named)
        named = window.stream
        if named is None:
            return None
    alias = table.args.get("alias")
    others = [key for key, value in table.args.items() if value and key not in ("this", "alias", "joins")]
    if others or not isinstance(named, exp.Identifier) or (alias is not None and alias.args.get("columns")):
        context.error(
            f"'{context.source(table)[:60]}' isn't a stream",
            table,
            "write the stream's name, and an alias if you like",
        )
        return None
    name = name_of(named)
    own = name_of(alias.this).text if alias is not None else name.text
    stream = context.catalog.streams.get(name.text)
    derived = context.catalog.derived.get(name.text)
    static = context.catalog.tables.get(name.text)
    if stream is not None:
        bound = _raw(own, stream)
    elif static is not None:
        if window is not None:
            what = f"'{static.name}' is a table, and windows are over event time"
            context.error(what, table, "join the table as it is")
            return Bound(own, name.text, None)
        bound = _raw(own, static)
    elif derived is not None:
        bound = _derived(context, table, own, derived)
    else:
        if name.text not in context.broken_streams:
            known: Iterable[str] = [
                *context.catalog.streams,
                *context.catalog.derived,
                *context.catalog.tables,
            ]
            context.error(f"there is no stream '{name.text}'", name.offset, suggest(name.text, known))
        return Bound(own, name.text, None)
    if window is not None and len(bound.sources) > 1:
        hint = "join the streams here, each in its windows"
        context.error(f"'{name.text}' joins streams, and windows are of one", table, hint)
        return Bound(own, name.text, None)
    if window is not None and bound.sources:
        (source,) = bound.sources
        base = context.catalog.streams[source.stream]
        columns = bound.columns or {}
        put = windows.put(context, window, source, columns, base)
        bound.sources = () if put is None else (put,)
        bound.columns = windows.with_columns(columns, own)
    return bound


def _raw(alias: str, stream: StreamDef | TableDef) -> Bound:
    columns: dict[str, Expr] = {c.name: Column(alias, c.name, c.type) for c in stream.columns}
    return Bound(alias, stream.name, columns, (Source(alias, stream.name),))


def _derived(context: Context, table: exp.Expr, alias: str, derived: DerivedDef) -> Bound:
    inner = derived.query.sources
    position = context.text.position(span(table)[0])

    def called(own: str) -> str:
        return alias if len(inner) == 1 else f"{alias}.{own}"

    def renamed(expr: Expr) -> Expr:
        return substitute(expr, lambda column: Column(called(column.alias), column.name, column.type))

    return Bound(
        alias,
        derived.name,
        {output.name: renamed(output.expr) for output in derived.query.select},
        tuple(Source(called(one.alias), one.stream, (derived.name, *one.via)) for one in inner),
        tuple(Conjunct(renamed(c.expr), c.text, position) for c in derived.query.conjuncts),
    )


def _outputs(
    context: Context, reader: Reader, sources: Sources, node: exp.Select
) -> tuple[Output, ...] | None:
    """The columns of SELECT; None where a mistake was reported."""
    made: list[tuple[exp.Expr, str | None, Expr | None]] = []
    for item in node.expressions:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            made += _star(context, sources, item)
        elif isinstance(item, exp.Alias):
            made.append((item, name_of(item.args["alias"]).text, reader.read(item.this)))
        elif isinstance(item, exp.Column):
            made.append((item, name_of(item.this).text, reader.read(item)))
        else:
            made.append((item, None, reader.read(item)))
    if not made:
        context.error("SELECT names no column", node, "write SELECT column, … FROM stream")
    outputs: list[Output] = []
    taken = {name for _, name, _ in made if name is not None}
    seen: set[str] = set()
    doubled = False
    for item, given, expr in made:
        if given is not None and given in seen:
            hint = f"name them apart with AS, such as AS other_{given}"
            context.error(f"two columns of SELECT are called '{given}'", item, hint)
            doubled = True
        name = given if given is not None else _invented(item, taken)
        seen.add(name)
        taken.add(name)
        if expr is not None:
            outputs.append(Output(name, expr))
    return tuple(outputs) if made and len(outputs) == len(made) and not doubled else None


def _star(
    context: Context, sources: Sources, item: exp.Expr
) -> list[tuple[exp.Expr, str | None, Expr | None]]:
    star = item.this if isinstance(item, exp.Column) else item
    if any(star.args.values()):
        context.error("* takes no EXCEPT, REPLACE or RENAME", item, "name the columns one by one")
        return [(item, None, None)]
    bound = sources.bound
    if isinstance(item, exp.Column):
        table = name_of(item.args["table"]) if item.args.get("table") is not None else None
        bound = [b for b in bound if table is not None and b.alias == table.text]
        if not bound:
            hint = suggest(table.text if table else "", [b.alias for b in sources.bound])
            context.error(f"FROM has no stream called '{table.text if table else ''}'", item, hint)
    if not bound or any(b.columns is None for b in bound):
        return [(item, None, None)]
    return [(item, name, expr) for b in bound for name, expr in (b.columns or {}).items()]


def _invented(item: exp.Expr, taken: set[str]) -> str:
    """A name as Postgres makes it up, with a number behind it where it is taken."""
    inner = item
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Anonymous):
        base = (inner.this.name if isinstance(inner.this, exp.Identifier) else str(inner.this)).lower()
    else:
        base = "case" if isinstance(inner, exp.Case) else "?column?"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name

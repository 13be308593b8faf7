"""The scope of a SELECT: resolves column names among the streams of FROM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.expressions.nodes import Expr, substitute
from tamis.query.context import Context
from tamis.query.model import Conjunct, Output, Source
from tamis.query.scalars.resolution import operands
from tamis.query.scalars.scopes import Scope
from tamis.query.syntax.cursor import Name
from tamis.query.unsupported import USE_WINDOWS
from tamis.wording.names import listed, suggest


@dataclass(frozen=True)
class FromItem:
    """One item of FROM, which is a stream or a table.

    `columns` is None if its definition has a mistake; nothing is known about it then. `sources` has several
    items for a derived stream that joins, and none if the item has a mistake. `inlined`: it is a derived
    stream or a subquery.
    """

    alias: str
    stream: str
    columns: Mapping[str, Expr] | None
    sources: tuple[Source, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    offset: int = 0
    inlined: bool = False


@dataclass(frozen=True)
class AsOfClause:
    """An ASOF JOIN of the text: its join, the number of its item in FROM, and the time after AS OF.

    It isn't `complete` if it lacks conditions, which is reported.
    """

    join: exp.Expr
    item: int
    as_of: exp.Expr | None = None
    complete: bool = True

    def conditions(self) -> Iterator[exp.Expr]:
        """The conditions of MATCH_CONDITION and ON."""
        for key in ("match_condition", "on"):
            node = self.join.args.get(key)
            if node is not None:
                yield from operands(node, exp.And)

    @property
    def outer(self) -> bool:
        """True for LEFT ASOF JOIN."""
        return str(self.join.args.get("side") or "") == "LEFT"


@dataclass(frozen=True)
class FromScope:
    """The items of FROM in their order; the first `visible` ones are joined so far and can be named.

    Resolving a SELECT goes from a scope to the next one.
    """

    items: tuple[FromItem, ...] = ()
    visible: int = 0
    asof: tuple[AsOfClause, ...] = ()
    merged: frozenset[tuple[str, str]] = frozenset()  # alias and name of columns that USING equates
    output_names: frozenset[str] = frozenset()  # given by AS in SELECT, which this clause can't use
    hidden_aliases: frozenset[str] = frozenset()  # of SEMI and ANTI joins, which rows don't contain
    duplicate_alias: bool = False  # two items have one alias, so that an unknown one may be meant for either

    @property
    def aliases(self) -> set[str]:
        """All aliases that are taken."""
        return {alias for item in self.items for alias in (item.alias, *(s.alias for s in item.sources))}

    @property
    def sources(self) -> list[tuple[Source, int]]:
        """All sources, each with the offset of its item."""
        return [(source, item.offset) for item in self.items for source in item.sources]

    def up_to(self, visible: int) -> Self:
        """The scope of a clause that can name the first `visible` items."""
        return replace(self, visible=visible)

    def has(self, name: str) -> bool:
        """True if an item has a column with this name, or if the columns of an item aren't known."""
        return any(item.columns is None or name in item.columns for item in self.items)

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The expression for a column of the visible items; None if a mistake was reported, or the columns of
        an item aren't known.
        """
        if table is not None:
            return self._qualified(context, node, table, name)
        visible = self.items[: self.visible]
        found = [
            (item, item.columns[name.text])
            for item in visible
            if item.columns is not None and name.text in item.columns
            if (item.alias, name.text) not in self.merged
        ]
        if any(item.columns is None for item in self.items):
            return None
        if not found and self._reported_as_window_column(context, node, name.text):
            return None
        if len(found) == 1:
            return found[0][1]
        if found:
            choices = " or ".join(f"{item.alias}.{name.text}" for item, _ in found)
            what = f"'{name.text}' is ambiguous: several streams have this column"
            context.error(what, node, f"write {choices}")
        elif name.text in self.output_names:
            hint = "repeat the expression: a name given by AS can't be used in WHERE, ON or HAVING"
            context.error_once(f"no stream in FROM has a column '{name.text}'", node, hint)
        else:
            names = [column for item in visible for column in item.columns or {}]
            hint = suggest(name.text, names, _text_hint(node, name, names), quoted=True)
            if hint.startswith("did you mean") and node.this.args.get("quoted"):
                hint += f" for a text, write '{name.text}': double quotes are for names"
            context.error_once(f"no stream in FROM has a column '{name.text}'", node, hint)
        return None

    def _qualified(self, context: Context, node: exp.Expr, table: Name, name: Name) -> Expr | None:
        for index, item in enumerate(self.items):
            if item.alias != table.text:
                continue
            if index >= self.visible:
                hint = "move the condition into a later ON, or into WHERE"
                context.error(f"'{table.text}' is not joined yet at this point", node, hint)
                return None
            if item.columns is None:
                return None
            if name.text not in item.columns:
                if not self._reported_as_window_column(context, node, name.text):
                    what = f"'{item.alias}' has no column '{name.text}'"
                    context.error_once(what, node, suggest(name.text, item.columns, quoted=True))
                return None
            return item.columns[name.text]
        if self.duplicate_alias or any(not item.alias for item in self.items):
            return None
        self.report_unknown_alias(context, node, table.text)
        return None

    def report_unknown_alias(self, context: Context, node: exp.Expr, alias: str) -> None:
        """Report an alias that no item of FROM has."""
        renamed = [item.alias for item in self.items if item.stream == alias]
        if alias in self.hidden_aliases:
            hint = "no row has its columns: use them only in its ON, and one of them in IS NULL"
        elif renamed:
            hint = f"in this query its name is '{renamed[0]}'"
        else:
            hint = suggest(alias, [item.alias for item in self.items])
        context.error_once(f"FROM has no stream named '{alias}'", node, hint)

    def _reported_as_window_column(self, context: Context, node: exp.Expr, name: str) -> bool:
        """Report the name of a window's column if FROM has streams with event time and no windows; returns
        False for any other name.
        """
        sources = [source for source, _ in self.sources]
        streams = (context.stream(source) for source in sources)
        timed = any(stream is not None and stream.time is not None for stream in streams)
        if name not in WINDOW_COLUMNS or not timed or any(source.windowed for source in sources):
            return False
        what = f"'{name}' is a column of windows, and FROM has no windows"
        context.error_once(what, node, USE_WINDOWS, USE_WINDOWS)
        return True


@dataclass(frozen=True)
class WithOutputs:
    """The scope of QUALIFY: the columns of FROM, and then those of SELECT."""

    scope: FromScope
    outputs: tuple[Output, ...]

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The expression for a column of FROM or, if FROM lacks an unqualified name, of SELECT; None if a
        mistake was reported.
        """
        if table is None and not self.scope.has(name.text):
            for output in self.outputs:
                if output.name == name.text:
                    return output.expr
        return self.scope.column(context, node, table, name)


def from_scope(scope: Scope) -> FromScope:
    """The columns of FROM that a clause of a SELECT can name."""
    scope = scope.scope if isinstance(scope, WithOutputs) else scope
    assert isinstance(scope, FromScope)
    return scope


def with_free_names(item: FromItem, taken: set[str]) -> FromItem:
    """The item with names of its sources that are not among `taken`. It keeps its own name for messages and
    conditions.
    """
    names: dict[str, str] = {}
    for source in item.sources:
        name, number = source.alias, 2
        while name in taken or name in names.values():
            name, number = f"{source.alias}_{number}", number + 1
        names[source.alias] = name

    def fresh(expr: Expr) -> Expr:
        return substitute(expr, lambda column: replace(column, alias=names.get(column.alias, column.alias)))

    known = None if item.columns is None else {name: fresh(expr) for name, expr in item.columns.items()}
    return replace(
        item,
        columns=known,
        sources=tuple(replace(source, alias=names[source.alias]) for source in item.sources),
        conjuncts=tuple(replace(one, expr=fresh(one.expr)) for one in item.conjuncts),
    )


def _text_hint(node: exp.Expr, name: Name, names: Sequence[str]) -> str | None:
    """A hint for an unknown name that probably means a text; None for any other one."""
    if node.this.args.get("quoted"):
        return f"write '{name.text}' for a text: double quotes are for names"
    if isinstance(node.parent, exp.EQ | exp.NEQ | exp.In):
        return f"write '{name.text}' for a text; known names: {listed(sorted(set(names)))}"
    return None

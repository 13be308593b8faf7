"""The watches that the calls of a SELECT add to its streams.

A call of `similar` or of a window function stands for a column, which edges add to the stream of its values
(`tamis.declarations.watches`). Therefore a source with such calls reads a watched stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tamis.declarations.streams import StreamDef, watched_stream
from tamis.declarations.watches import AnyWatch
from tamis.errors import SqlError
from tamis.expressions.nodes import Expr
from tamis.query.context import Context
from tamis.query.model import Source
from tamis.query.patterns.watch_text import WatchText
from tamis.query.scalars.scopes import Scope
from tamis.query.selects.calls.similarity import Similarities
from tamis.query.selects.calls.window_calls import WindowCalls
from tamis.query.selects.scope import FromScope, from_scope


class WatchedCalls:
    """The watches of one SELECT, by the alias of their source. `tree` is the SELECT's syntax tree."""

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self.watches: dict[str, list[AnyWatch]] = {}
        self.windows = WindowCalls(FromScope(), tree, self._add)

    def _add(self, alias: str, watch: AnyWatch) -> None:
        known = self.watches.setdefault(alias, [])
        if watch not in known:
            known.append(watch)

    def call(self, context: Context, node: exp.Expr, name: str, scope: Scope) -> Expr | None:
        """Add the watch of a call of similar, similarity, scale, shift or pattern, and return the expression
        for its value; None if a mistake was reported.
        """
        return Similarities(from_scope(scope), self._tree, self._add).call(context, node, name)

    def window(self, context: Context, node: exp.Expr, scope: Scope) -> Expr | None:
        """Add the watch of a window function, and return the column for its value; None if a mistake was
        reported.
        """
        return replace(self.windows, scope=from_scope(scope)).call(context, node)

    def sources(
        self, context: Context, sources: Sequence[Source]
    ) -> tuple[tuple[Source, ...], tuple[StreamDef, ...]]:
        """The sources with their watched streams, and all watched streams that they read."""
        streams = context.catalog.streams
        found: list[Source] = []
        watched: dict[str, StreamDef] = {}
        for source in sources:
            stream = streams.get(source.stream)
            if stream is None:  # a table
                found.append(source)
                continue
            if source.alias in self.watches:
                base = stream if stream.base is None else streams[stream.base]
                stream = watched_stream(base, (*stream.watches, *self.watches[source.alias]))
                # The object of an earlier query, so that results that were cached for it are found.
                same = streams.get(stream.name)
                stream = same if same == stream else stream
            if stream.base is not None:
                watched[stream.name] = stream
            found.append(replace(source, stream=stream.name))
        return tuple(found), tuple(watched.values())

    def reword(self, context: Context, since: int, scope: FromScope) -> None:
        """Write the errors from number `since` on in the words of the query: calls in place of columns."""
        _, watched = self.sources(context, [source for source, _ in scope.sources])
        words = WatchText(watched)
        if watched:
            context.errors[since:] = [
                SqlError(words(error.what), error.position, words(error.hint or ""))
                for error in context.errors[since:]
            ]

"""GROUP BY the `window_end` of rows of aggregates: windows that each contain the rows of one time.

`SELECT window_end, sum(mean) FROM means GROUP BY window_end` means
`… FROM TUMBLE(means, window_end, slide) GROUP BY window_end`, with the slide (or step, or size) of the
windows of `means`: their rows lie one slide apart, and a row's event time is the last microsecond of its
window. `window_end` may have another name in `means`.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, Window
from tamis.query.model import last_query
from tamis.query.selects.aggregated_streams import is_end
from tamis.query.selects.scope import FromScope
from tamis.query.selects.windows import with_window_columns
from tamis.query.syntax.cursor import name_of


def with_own_windows(node: exp.Select, scope: FromScope) -> FromScope:
    """The scope with windows of the rows of aggregates that are the only source, if the query groups by their
    own.
    """
    clause = node.args.get("group")
    if clause is None or len(scope.items) != 1 or len(scope.items[0].sources) != 1:
        return scope
    item, (source,) = scope.items[0], scope.items[0].sources
    rows, shown = source.aggregated, dict(item.columns or {})
    if rows is None or source.windowed:
        return scope
    window = last_query(rows.query).window
    named = {name_of(one.this).text for one in clause.expressions if isinstance(one, exp.Column)}
    if window is None or not named & set(WINDOW_COLUMNS) <= shown.keys():
        return scope
    ends = {name for name in named if name in shown and is_end(shown[name], rows)}
    same = window.slide == window.size and not window.cumulative  # window_start then is that of the rows, too
    if WINDOW_START in shown and not same:
        return scope
    if not (named & set(WINDOW_COLUMNS) or ends) or (
        WINDOW_END in shown and not is_end(shown[WINDOW_END], rows)
    ):
        return scope
    slide = window.slide
    sources = (replace(source, window=Window(slide, slide, window.offset % slide)),)
    added = with_window_columns(shown, item.alias)
    columns = {**added, **dict.fromkeys(ends, added[WINDOW_END])}
    return replace(scope, items=(replace(item, sources=sources, columns=columns),))

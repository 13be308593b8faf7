"""Raw streams of a SELECT's sources: calls such as similar(…) and lag(…) need all of their readings."""

from __future__ import annotations

from sqlglot import exp

from tamis.declarations.streams import StreamDef
from tamis.query.context import Context
from tamis.query.selects.scope import FromScope

_WATERMARK = "add WATERMARK FOR column AS column - INTERVAL '5' SECOND to its CREATE STREAM"


def raw_stream(
    context: Context, scope: FromScope, node: exp.Expr, alias: str, reads: str, *, through: bool = False
) -> StreamDef | None:
    """The raw stream of the source with an alias, if all of its readings are known and have event times; else
    that is reported. `reads` says what the call does: "similar compares readings".

    The result of a SELECT may have lost readings, so it is refused. With `through`, the result of a SELECT of
    one stream without conditions is read as its raw stream.
    """
    items = (item for item in scope.items if any(one.alias == alias for one in item.sources))
    item = next(items, None)
    if item is None:  # its windows have a mistake
        return None
    catalog, call = context.catalog, reads.partition(" ")[0]
    whole = through and len(item.sources) == 1 and not item.conjuncts
    if item.inlined and not whole:
        hint = f"write {call}(…) in the SELECT of '{item.stream}', or read the raw stream"
        what = f"{reads} of a raw stream, and '{item.stream}' is the result of a SELECT"
        context.error_once(what, node, hint)
        return None
    (source,) = (one for one in item.sources if one.alias == alias)
    if source.stream in catalog.tables:
        what = f"{reads} of a stream, and '{item.stream}' is a table"
        context.error_once(what, node, "use a column of a stream")
        return None
    stream = catalog.streams[source.stream]
    stream = stream if stream.base is None else catalog.streams[stream.base]
    if stream.time is None:
        if stream.name not in context.missing_watermarks:
            context.missing_watermarks.add(stream.name)
            what = f"{call} needs event time, and stream '{stream.name}' has no WATERMARK"
            context.error(what, node, _WATERMARK)
        return None
    return stream

"""Tables, functions and patterns, and the parts of streams and queries: columns, rates and windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.declarations.watches import NamedPattern
from tamis.errors import Position
from tamis.expressions.nodes import Expr, Type

# A stream's source may be silent for this long before its shards count as gone. Joins wait for it until then.
MAX_STALL = 3_600_000_000

# Event times may be this far ahead of the clock. One reading from the future makes all later readings late,
# and no correct clock is 10 minutes ahead; Prometheus refuses samples from further ahead for the same
# reason.
MAX_AHEAD = 600_000_000


WINDOW_START, WINDOW_END = "window_start", "window_end"
WINDOW_COLUMNS = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True)
class Window:
    """HOP, TUMBLE or CUMULATE over event time, in microseconds counted from 1970 in UTC.

    The windows of HOP and TUMBLE are [offset + k * slide, offset + k * slide + size) for every integer k. The
    size is a multiple of the slide; for TUMBLE the two are equal. The `cumulative` windows are
    [offset + k * size, offset + k * size + j * slide) for j from 1 to size / slide. The offset is less than
    the distance of two starts, and not negative.
    """

    slide: int
    size: int
    offset: int = 0
    cumulative: bool = False


@dataclass(frozen=True)
class Session:
    """SESSION over event time, in microseconds: tuples of one key, each at most `gap` after the one before.

    The key is the columns `by`. With a `greatest` length, a session is cut at each multiple of it after its
    first tuple.
    """

    gap: int
    greatest: int | None
    by: tuple[str, ...]


@dataclass(frozen=True)
class ColumnDef:
    """One column of a raw stream; `check` is its declared domain, an expression over `Column("", name)`.

    A column that a query adds to a stream is `computed` from the stream's other columns, also over
    `Column("", name)`, or from columns of several sources, over `Column(alias, name)`.
    """

    name: str
    type: Type
    key: bool = False
    not_null: bool = False
    check: Expr | None = None
    computed: Expr | None = None


@dataclass(frozen=True)
class Rate:
    """At most `count` tuples of one key in any span of `per` microseconds."""

    count: int
    per: int


@dataclass(frozen=True)
class PatternDef:
    """CREATE PATTERN: one pattern, or all patterns of a folder, whose names begin with `name/`.

    `sql` has the values instead of the name of the file, so that it means the same everywhere and later.
    """

    name: str
    members: tuple[NamedPattern, ...]
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)  # on its file, for the user


@dataclass(frozen=True)
class TableDef:
    """CREATE TABLE r (…) WITH (path = '…'): a static relation, whose rows are read from a CSV or Parquet
    file.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    path: str
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True)
class FunctionDef:
    """CREATE FUNCTION, for SHOW and DROP; its calls are inlined."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    returns: Type
    body: Expr  # over Column("", parameter)
    functions: tuple[str, ...] = ()
    sql: str = ""
    position: Position = field(default=Position(1, 1), compare=False)

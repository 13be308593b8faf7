"""The verdict on a query before it runs: accepted or why not, the rule of each input, memory and proof.

Applying statements and planning need the verdict alone; `tamis.planning.explain` renders it for people.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.bounded.memory import EMPTY, Memory
from tamis.declarations.definitions import Session, Window
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Expr
from tamis.expressions.sql_text import to_sql
from tamis.plan.omission import Omission, bare
from tamis.planning.join_verdict import JoinVerdict
from tamis.query.model import AlertDef, DerivedDef, Source
from tamis.query.patterns.watch_text import WatchText


@dataclass(frozen=True)
class InputVerdict:
    """The rule of one input, in the words of the user's SQL.

    `filter` is over bare names, and so is `implied`, which the other conditions imply. `watched`: the watched
    stream in place of the stream.
    """

    alias: str
    stream: str
    omission: Omission
    filter: Expr | None
    implied: Expr | None = None
    window: Window | None = None
    session: Session | None = None
    watched: StreamDef | None = None

    @property
    def reason(self) -> str:
        """The reason of the omission, with the implied filter."""
        return with_implied(self.omission.reason, self.implied, self.watched)


def with_implied(reason: str, implied: Expr | None, watched: StreamDef | None) -> str:
    """The reason of an omission with the filter that the other conditions imply."""
    if implied is None:
        return reason
    return f"{reason}. The other conditions imply {sql_over(implied, watched)}, by which edges filter, too"


def sql_over(expr: Expr, watched: StreamDef | None) -> str:
    """SQL over the columns of a stream, with the calls of the user's SQL if it is a watched one."""
    return to_sql(expr) if watched is None else WatchText([watched])(to_sql(expr))


# A bound of more entries is no help to anybody: even small ones need 100 GB.
MOST_ENTRIES = 10**9


@dataclass(frozen=True)
class Verdict:
    """The verdict on an alert or a derived stream.

    `reason`: why it is refused; otherwise how it is partitioned or when its rows come. `join`: the proof of a
    join by time. `open_ended`: a join over event time without bounds, whose memory application time bounds.
    """

    name: str
    kind: str  # "alert", "stream"
    accepted: bool
    reason: str
    inputs: tuple[InputVerdict, ...]
    memory: Memory
    join: JoinVerdict | None = None
    open_ended: bool = False


def kept_whole(
    definition: AlertDef | DerivedDef, memory: Memory, reason: str, inputs: tuple[InputVerdict, ...]
) -> Verdict:
    """A query of which nothing is omitted: its memory decides. `reason` stands if it is accepted."""
    allowed = isinstance(definition, AlertDef) and definition.options.allow_unbounded
    against = None if memory.verdict == "bounded" else memory.reason
    if memory.bound is not None and memory.bound > MOST_ENTRIES:
        against = (
            f"it is bounded by {memory.bound:,} entries, more than any machine has: limit the columns with"
            " many values by CHECK or keys, or allow it by WITH (allow_unbounded = true)"
        )
    accepted = against is None or allowed
    found = reason if accepted else str(against)
    return Verdict(definition.name, kind_of(definition), accepted, found, inputs, memory)


def never_a_row(definition: AlertDef | DerivedDef, contradiction: str) -> Verdict:
    """A query that never has a row."""
    reason = f"{contradiction}, so the query never has a row"
    memory = Memory("bounded", 0, "0", EMPTY, reason)
    return Verdict(definition.name, kind_of(definition), False, reason, (), memory)


def kind_of(definition: AlertDef | DerivedDef) -> str:
    """The kind of a query, as EXPLAIN names it."""
    return "alert" if isinstance(definition, AlertDef) else "stream"


def whole_input(source: Source, filter_: Expr | None, why: str) -> InputVerdict:
    """An input of which every tuple that passes the filter is kept."""
    filter_ = bare(filter_)
    return InputVerdict(source.alias, source.stream, Omission.none(source.alias, (), filter_, why), filter_)

"""Definitions of a plan: an accepted alert in the form in which the joiner runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Expr, columns, conjunction
from tamis.plan.model import GREATEST, Absence, Definition, Input, sayable
from tamis.plan.omission import Omission
from tamis.planning.join_bounds import kept
from tamis.planning.join_verdict import JoinVerdict
from tamis.query.model import AlertDef


def definition_id(alert: str, version: int) -> str:
    """The name of a definition in plans and frontiers."""
    return f"{alert}@{version}"


def define(alert: AlertDef, version: int, verdict: JoinVerdict, topics: Mapping[str, str]) -> Definition:
    """The definition of `alert` that plan `version` makes; `topics`: the topic of each source by alias."""
    analysis = verdict.analysis
    of = {
        alias: one if one is not None and one.tuples <= GREATEST else None
        for alias, one in kept(analysis, verdict.omissions).items()
    }
    inputs = tuple(
        replace(_input(omission, alert, verdict, topics[omission.alias]), kept=of[omission.alias])
        for omission in verdict.omissions
    )
    return Definition(
        alert=alert.name,
        version=version,
        inputs=inputs,
        equalities=verdict.keys.rest,
        bounds=analysis.bounds,
        condition=conjunction(analysis.conditions),
        select=tuple((output.name, output.expr) for output in alert.query.select),
        severity=alert.options.severity,
        labels=alert.options.labels,
        gap=alert.options.gap,
        for_=alert.options.for_,
        bound=sayable(verdict.memory.bound),
        window=analysis.window,
        margins=_margins(verdict, [a for a in analysis.aliases if a not in analysis.absent]),
        exists=analysis.exists,
        absences=tuple(
            Absence(
                part.aliases,
                rest,
                part.bounds,
                conjunction(part.conditions),
                _margins(verdict, part.aliases),
            )
            for part, rest in zip(analysis.absences, verdict.keys.absent_rest, strict=True)
        ),
    )


def _margins(verdict: JoinVerdict, aliases: Sequence[str]) -> tuple[Margin, ...]:
    """The margins of sources whose edges compare values in another order than exact numbers have."""
    return tuple(o.margin for o in verdict.omissions if o.margin is not None and o.alias in aliases)


def _input(omission: Omission, alert: AlertDef, verdict: JoinVerdict, topic: str) -> Input:
    analysis = verdict.analysis
    alias = omission.alias
    stream = analysis.streams[alias]
    partition = verdict.keys.partition[alias]
    return Input(
        alias=alias,
        stream=stream.name,
        topic=topic,
        time=analysis.times[alias],
        partition_key=partition,
        filter=omission.filter,
        interval=omission.interval,
        columns=read_columns(alert, verdict, omission),
        certificate=omission.certificate,
    )


def read_columns(alert: AlertDef, verdict: JoinVerdict, omission: Omission) -> tuple[str, ...]:
    """The columns of a source that are read, without partition key and time, in the stream's order.

    They always include the KEY columns: alarms carry their tuples, and KEY columns say which device sent
    them.
    """
    alias, analysis = omission.alias, verdict.analysis
    parts: list[Expr] = [output.expr for output in alert.query.select]
    parts += [*analysis.conditions, *analysis.predicates[alias]]
    for part in analysis.absences:
        parts += [*part.conditions, *(c for pair in part.equalities for c in pair)]
    parts += [] if omission.filter is None else [omission.filter]
    parts += [c for pair in verdict.keys.rest for c in pair]
    named = {c.name for part in parts for c in columns(part) if c.alias == alias}
    named |= set(omission.key) | set(analysis.streams[alias].key)
    named -= {*verdict.keys.partition[alias], analysis.times[alias]}
    return tuple(c.name for c in analysis.streams[alias].columns if c.name in named)

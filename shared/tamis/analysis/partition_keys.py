"""Partition key of a query: attributes that all tuples of a combination share, for Kafka's partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tamis.analysis.conjuncts import Analysis
from tamis.analysis.equality_classes import Equality, classes
from tamis.expressions.nodes import Column


@dataclass(frozen=True)
class Keys:
    """`partition[alias]`: names of columns, in the same order for all sources; `rest`: the other equalities;
    `reason`: why these columns; `absent_rest`: the other equalities of each absence.
    """

    partition: dict[str, tuple[str, ...]]
    rest: tuple[Equality, ...]
    reason: str
    absent_rest: tuple[tuple[Equality, ...], ...] = ()


def partition_keys(analysis: Analysis) -> Keys:
    """Choose the partition key among the equivalence classes that have an attribute of every source.

    These are all classes of KEY columns; if there is none, the class with the most KEY columns, by the
    order of the text among equals. A single source is partitioned by its KEY columns. Without any of these,
    the query runs in one partition.
    """
    if len(analysis.aliases) == 1:
        alias = analysis.aliases[0]
        key = analysis.streams[alias].key
        reason = (
            "the KEY columns" if key else _single(f"stream {analysis.streams[alias].name} has no KEY column")
        )
        return Keys({alias: key}, (), reason)
    chosen = [
        members
        for group in _classes(analysis)
        if (members := _attribute_per_source(group, analysis)) is not None
    ]
    ranks = [sum(_is_key(c, analysis) for c in members.values()) for members in chosen]
    full = [members for members, rank in zip(chosen, ranks, strict=True) if rank == len(analysis.aliases)]
    if not full and chosen:
        full = [chosen[ranks.index(max(ranks))]]
    partition = {alias: tuple(members[alias].name for members in full) for alias in analysis.aliases}
    pairs = [set(members.values()) for members in full]

    def others(equalities: Sequence[Equality]) -> tuple[Equality, ...]:
        return tuple(eq for eq in equalities if not any(set(eq) <= members for members in pairs))

    rest = others(analysis.equalities)
    absent_rest = tuple(others(part.equalities) for part in analysis.absences)
    if full:
        named = " and ".join(" = ".join(f"{c.alias}.{c.name}" for c in m.values()) for m in full)
        return Keys(partition, rest, named, absent_rest)
    return Keys(partition, rest, _single("no attribute is equal in all of its streams"), absent_rest)


def _classes(analysis: Analysis) -> list[list[Column]]:
    """The equivalence classes of attributes, each with those that absences equate with it.

    The equalities of an absence hold for its own tuples only: they don't connect two attributes of the rows,
    nor those of two absences.
    """
    found = classes(analysis.equalities)
    absent = analysis.absent
    base = [alias for alias in analysis.aliases if alias not in absent]
    if len(base) == 1:
        equal = [c for part in analysis.absences for pair in part.equalities for c in pair]
        found += [[column] for column in dict.fromkeys(equal) if column.alias == base[0]]
    extended = []
    for group in found:
        members = list(group)
        for part in analysis.absences:
            for other in classes((*analysis.equalities, *part.equalities)):
                if group[0] in other:
                    members += [c for c in other if c.alias in part.aliases]
        extended.append(members)
    return extended


def _single(why: str) -> str:
    return f"{why}: the query runs in a single partition"


def _attribute_per_source(group: list[Column], analysis: Analysis) -> dict[str, Column] | None:
    """An attribute of the class for every source, KEY columns first; None if a source has none."""
    members: dict[str, Column] = {}
    for alias in analysis.aliases:
        own = [c for c in group if c.alias == alias]
        if not own:
            return None
        members[alias] = next((c for c in own if _is_key(c, analysis)), own[0])
    return members


def _is_key(column: Column, analysis: Analysis) -> bool:
    return column.name in analysis.streams[column.alias].key

"""Records of cuts: partial aggregates of panes, in place of the tuples of one shard (docs/cuts.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from tamis.messaging.records import END_OF_TIME
from tamis.operators.windows.pane_documents import from_document
from tamis.operators.windows.pane_rows import PaneRows
from tamis.plan.nodes import Grouping
from tamis.plan.wire import wire_type


@dataclass(frozen=True)
class CutRecord:
    """One part of a cut of a shard. Places are positions in the shard's source.

    `version`: the plan under which it was drawn. `form`: the plan by whose queries its rows were made.
    `place`: that of the cut among the shard's cuts, and the part. `since`: the place where the cuts of its
    topic begin. `before` and `reached`: place and event time of the previous cut, and of this one.
    """

    row: int
    shard: str
    version: int
    form: int
    place: tuple[int, int]
    since: int
    before: tuple[int, int]
    reached: tuple[int, int]
    document: Mapping[str, Any]


@dataclass(frozen=True)
class ArrivedCut:
    """A cut with its rows."""

    topic: str
    record: CutRecord
    rows: PaneRows
    grouping: Grouping


def cut_record(row: int, envelope: Mapping[str, Any], document: Mapping[str, Any]) -> CutRecord:
    """The record at `row`, from its envelope and the rest. Raises ValueError, KeyError or TypeError if it
    isn't one of an edge.
    """
    shard = envelope["shard"]
    if type(shard) is not str:
        raise TypeError("shard")
    numbers = [envelope["plan"], envelope["form"], envelope["since"]]
    pairs = [envelope["place"], envelope["from"], envelope["to"]]
    numbers += [number for pair in pairs for number in pair]
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise TypeError("place")
    if not all(type(number) is int and -(2**63) <= number <= END_OF_TIME for number in numbers):
        raise TypeError("place")
    version, form, since, *(number, part, *corners) = numbers
    before, reached = (corners[0], corners[1]), (corners[2], corners[3])
    return CutRecord(row, shard, version, form, (number, part), since, before, reached, document)


def arrived_cut(topic: str, record: CutRecord) -> ArrivedCut:
    """The cut with its rows. Raises InputError if they can't be read."""
    document = dict(record.document)
    grouping = _grouping(msgspec.json.encode(document.pop("grouping", None)))
    return ArrivedCut(topic, record, from_document(document, grouping), grouping)


@lru_cache(maxsize=256)
def _grouping(form: bytes) -> Grouping:
    """The form of rows. It is the same in all cuts of a topic under one plan."""
    grouping: Grouping = wire_type(Grouping).decode(form, "grouping")
    return grouping

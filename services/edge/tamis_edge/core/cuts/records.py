"""Records of cuts, as docs/topics.md describes them: one for each output partition and part with rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from tamis.messaging.records import ENVELOPE
from tamis.omission.columns import Int64s
from tamis.operators.cuts.chain import CutChain, Sending
from tamis.operators.windows.cut_policy import part_of_each
from tamis.operators.windows.pane_documents import to_document
from tamis.operators.windows.pane_rows import PaneRows
from tamis.plan.nodes import Grouping
from tamis.plan.wire import wire_type
from tamis_edge.core.records import MessageKeys


class CutOrigin(NamedTuple):
    """The origin that the records of a cut name. Places are `born` plus an offset or a number of a cut.
    `form`: the plan by whose queries the rows were made.
    """

    shard: str
    born: int
    form: int


def cut_records(
    chain: CutChain, sending: Sending, origin: CutOrigin, partitions: int
) -> Iterator[tuple[int, bytes]]:
    """The output partition and the value of each record."""
    cut, rows, grouping = sending
    born, (offset, time) = origin.born, chain.before
    envelope = {
        "kind": "cut",
        "shard": origin.shard,
        "plan": cut.version,
        "form": origin.form,
        "since": born + chain.since,
        "from": [born + offset, time],
        "to": [born + cut.offset, cut.time],
    }
    if cut.full:
        envelope["full"] = True
    # The plan of the reader may have other aggregates by now.
    form = wire_type(Grouping).write(grouping)
    partition = _partitions(chain.topic.partition_key, rows, grouping, partitions)
    place = partition * cut.parts + part_of_each(rows, cut.parts)
    for number in np.unique(place).tolist():
        at_partition, part = divmod(number, cut.parts)
        own = rows.take(np.flatnonzero(place == number))
        head = {**envelope, "place": [cut.place, part]}
        document = {**to_document(own, grouping), "grouping": form, ENVELOPE: head}
        yield at_partition, msgspec.json.encode(document)


def _partitions(key: tuple[str, ...], rows: PaneRows, grouping: Grouping, partitions: int) -> Int64s:
    """The output partition of each row: the partition key is part of the groups."""
    by_name = {column.name: vector for column, vector in zip(grouping.by, rows.groups, strict=True)}
    keys = MessageKeys(partitions)
    return keys.partitions(keys.codes([by_name[name] for name in key], len(rows)))

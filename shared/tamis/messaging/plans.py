"""The newest plan of `tamis.plans`, found without decoding older plans.

Each partition of the topic keeps the versions of a week, in order, and all partitions have the same ones.
So the newest plan is among the last records, and only that record is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tamis.errors import InputError
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import decode_plan, version_of
from tamis.plan.model import Plan

# Number of offsets before the end of each partition that are read first. A plan takes two: its record and the
# marker of its transaction's end. The number is small, since a plan of thousands of queries has up to 32 MiB.
TAIL = 8
# If none of these records is a plan, the number is multiplied by this factor.
FARTHER = 16

Unreadable = Callable[[Record, InputError], None]
Cut = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Newest:
    """A plan and the bytes that it was decoded from."""

    plan: Plan
    document: bytes


def newest_plan(reader: TopicReader, unreadable: Unreadable, cut: Cut = bytes) -> Newest | None:
    """The plan of the greatest version in any partition of `reader`; None if no plan can be read. `reader`
    reads `tamis.plans` alone; its `poll` then continues from the end. `unreadable` is called with each of the
    last records that can't be read as a plan. `cut`: the part of a plan that is to be decoded.
    """
    tail = TAIL
    while True:
        found = newest(reader.snapshot(last={PLANS: tail}), 0, unreadable, cut)
        if found is not None or reader.from_beginning:
            return found
        tail *= FARTHER


def newest(records: Iterable[Record], above: int, unreadable: Unreadable, cut: Cut = bytes) -> Newest | None:
    """The plan of the greatest version above `above` among `records`; None if no plan is newer. Only the
    versions of the other records are read. `cut`: the part of a plan that is to be decoded.
    """
    found: dict[int, Record] = {}
    for record in records:
        if record.value is None:
            continue
        try:
            version = version_of(record.value)
        except InputError as error:
            unreadable(record, error)
            continue
        if version > above:
            found.setdefault(version, record)
    for version in sorted(found, reverse=True):
        document = cut(found[version].value or b"")
        try:
            return Newest(decode_plan(document), document)
        except InputError as error:
            unreadable(found[version], error)
    return None

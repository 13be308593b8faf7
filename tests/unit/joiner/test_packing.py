"""Packing of records for the processor: they are unpacked as they came from Kafka."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tamis_joiner.spark.batch import unpack
from tamis_joiner.spark.packing import pack

Record = tuple[int, str, int, int, int, bytes | None]  # group, topic, partition, offset, arrived, value

SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("arrived", pa.int64()),
        ("value", pa.binary()),
    ]
)


def packed(batches: list[list[Record]]) -> dict[int, list[bytes]]:
    """What each group is given."""
    found: dict[int, list[bytes]] = {}
    for batch in pack(pa.RecordBatch.from_arrays(list(zip(*b, strict=True)), schema=SCHEMA) for b in batches):
        for row in batch.to_pylist():
            found.setdefault(row["group"], []).append(row["packed"])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_every_record_once_by_topic_in_the_order_of_offsets(seed: int) -> None:
    r = random.Random(seed)
    groups = {partition: r.randrange(1000) * 3 + partition for partition in range(r.randint(1, 3))}
    logs = {(t, p): range(s := r.randrange(50), s + r.randint(1, 40)) for t in "ab" for p in groups}
    records: list[Record] = [
        (groups[p], t, p, offset, 1000 + offset, r.choice((b"", None, b"%d" % offset)))
        for (t, p), offsets in logs.items()
        for offset in offsets
    ]
    # A task reads its partitions one after the other, and Spark cuts what it reads into batches.
    cuts = sorted(r.sample(range(1, len(records)), k=min(3, len(records) - 1)))
    batches = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    found = packed(batches)
    assert sorted(found) == sorted(groups.values())
    for partition, group in groups.items():
        parts = found[group]
        r.shuffle(parts)  # the shuffle between tasks keeps no order
        logs_found = {some.topic: some for some in unpack(parts)}
        assert sorted(logs_found) == ["a", "b"]
        for topic, some in logs_found.items():
            wanted = [x for x in records if x[1] == topic and x[2] == partition]
            assert some.partition == partition
            assert some.offsets.tolist() == [x[3] for x in wanted] == list(logs[topic, partition])
            assert some.arrived.tolist() == [x[4] for x in wanted]
            assert list(some.values) == [x[5] or b"" for x in wanted]

"""The partitioner against the test vectors of the Java client.

librdkafka itself is the oracle in tests/integration/edge/test_edge.py.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.partitioner import murmur2, partition_of
from tamis.operators.time_join.key_table import KeyTable
from tamis_edge.core.records import MessageKeys

# From Kafka's UtilsTest.testMurmur2.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", JAVA)
def test_murmur2_is_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] % 2**32


def test_a_key_is_encoded_once_and_equal_for_equal_values() -> None:
    doubles, integers = MessageKeys(8), MessageKeys(8)
    codes = doubles.codes([Vector(np.array([1.0, 2.5, 1.0]))], 3)
    assert codes.tolist() == [0, 1, 0]
    integers.codes([Vector(np.array([1]))], 1)
    assert doubles.encoded == [b"[1]", b"[2.5]"]
    assert doubles.encoded[0] == integers.encoded[0]
    assert doubles.partitions(codes).tolist() == [
        partition_of(b"[1]", 8),
        partition_of(b"[2.5]", 8),
        partition_of(b"[1]", 8),
    ]


def test_many_keys_keep_their_codes() -> None:
    keys = MessageKeys(4)
    names = np.array([f"k{i}" for i in range(1000)], np.object_)
    assert keys.codes([Vector(names)], 1000).tolist() == list(range(1000))
    assert keys.codes([Vector(names[::-1])], 1000).tolist() == list(range(999, -1, -1))
    assert set(keys.partitions(np.arange(1000)).tolist()) == {0, 1, 2, 3}


def test_a_key_takes_little_more_memory_than_its_bytes() -> None:
    """Each encoded key had taken 4 kB, so that 100,000 keys took 400 MB."""
    keys, names = MessageKeys(4), Vector(np.array([f"k{i}" for i in range(2000)], np.object_))
    tracemalloc.start()
    try:
        keys.codes([names], 2000)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2000 < 300


def test_keys_of_several_columns_and_of_none() -> None:
    pair = MessageKeys(4)
    station = Vector.from_list(["a", "b", "a"], Type.VARCHAR)
    number = Vector.from_list([1, 1, 1], Type.BIGINT)
    assert pair.codes([station, number], 3).tolist() == [0, 1, 0]
    assert pair.encoded == [b'["a",1]', b'["b",1]']
    none = MessageKeys(4)
    assert none.codes([], 2).tolist() == [0, 0]
    assert none.encoded == [b"[]"]


def test_null_is_a_value_of_an_omission_key() -> None:
    table = KeyTable()
    assert table.codes([Vector.from_list(["a", None, None], Type.VARCHAR)], 3).tolist() == [0, 1, 1]


@pytest.mark.parametrize("huge", [1e300, -1e300, 2.0**64])
def test_a_key_beyond_every_integer_is_still_a_key(huge: float) -> None:
    keys = MessageKeys(4)
    keys.codes([Vector(np.array([huge]))], 1)
    assert float(keys.encoded[0].strip(b"[]")) == huge

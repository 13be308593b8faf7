"""The partition of a record by its key, as Kafka's Java client chooses it."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """MurmurHash2 (Austin Appleby) with the seed of Kafka's Java client, as an unsigned 32-bit integer.

    >>> murmur2(b"21") == 0x100000000 - 973932308
    True
    """
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record with this key in a topic with `partitions` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions

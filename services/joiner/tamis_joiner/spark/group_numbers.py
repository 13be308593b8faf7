"""Group numbers that place the group of Kafka partition p in Spark's task p.

Spark assigns groups to tasks by a hash of their number. With partition numbers as group numbers some tasks
would have several groups and others none.
"""

from __future__ import annotations

# Spark's seed for the hash of a row.
_SEED = 42
_WORD = 0xFFFFFFFF


def murmur3(value: int) -> int:
    """Spark's hash of an INT column: Murmur3 (x86, 32 bits) of its four bytes, as a signed integer.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """
    mixed = (value & _WORD) * 0xCC9E2D51 & _WORD
    mixed = (mixed << 15 | mixed >> 17) & _WORD
    mixed = mixed * 0x1B873593 & _WORD
    result = _SEED ^ mixed
    result = (result << 13 | result >> 19) & _WORD
    result = (result * 5 + 0xE6546B64) & _WORD
    result ^= 4  # length
    result ^= result >> 16
    result = result * 0x85EBCA6B & _WORD
    result ^= result >> 13
    result = result * 0xC2B2AE35 & _WORD
    result ^= result >> 16
    return result - (1 << 32) if result >= 1 << 31 else result


def group_numbers(partitions: int) -> list[int]:
    """The least number for each partition that Spark's `pmod(hash(number), partitions)` puts in its task.

    >>> group_numbers(4), group_numbers(8)
    ([12, 6, 2, 0], [12, 6, 5, 1, 25, 15, 2, 0])
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(murmur3(number) % partitions, number)
        number += 1
    return [found[task] for task in range(partitions)]

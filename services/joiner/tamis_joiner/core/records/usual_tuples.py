"""Tuples of the usual form, decoded to columns without objects of Python for their values.

An edge writes a tuple as a flat JSON object, and appends the envelope, which is the same for many tuples. So
an envelope is decoded once in a batch and taken off the tuples by a compiled loop. The compiled decoder of
edges decodes the rest.
Everything else is left to `envelopes`, which also finds and names mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.messaging.records import END_OF_TIME, ENVELOPE
from tamis.recordings.flat_json.columns import FlatDecoder, without_suffixes

# An envelope of the usual form and what precedes it: the end of a value.
_MARK = b',"%s":' % ENVELOPE.encode()
# The last byte of a value that is no object and no array: of a text, a number, or a literal.
_LAST = np.isin(np.arange(256), list(b'"0123456789el'))
# Envelopes of a batch that are remembered.
MOST_ENVELOPES = 64
# Texts of a topic that are remembered: with their bytes and strings up to 20 MB.
MOST_TEXTS = 1 << 17

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Columns = tuple[tuple[str, str, Type], ...]
"""A column, its name in the documents, and its type."""


@dataclass(frozen=True)
class UsualTuples:
    """Tuples as columns: their rows among the records in ascending order, the plan versions under which they
    were sent, whether they came late, and their values.
    """

    rows: Ints
    versions: Ints
    late: NDArray[np.bool_]
    columns: dict[str, Vector]

    def times(self, time: str) -> NDArray[np.int64]:
        """Their event times, by the column that has them; 0 without such a column."""
        return self.columns[time].data if time else np.zeros(len(self.rows), np.int64)


def usual_tuples(
    values: Sequence[bytes], version: int, columns: Columns, time: str
) -> tuple[UsualTuples | None, Sequence[int]]:
    """The tuples among `values` that have the usual form, plans up to `version` and an event time; and the
    rows of all other values. `time` is the column with the event time, empty if the stream has none.
    """
    envelopes = _KnownEnvelopes(version)
    if not any(map(envelopes.add, values)):
        return None, range(len(values))
    buffer, ends = _joined(values)
    which, flat, sizes = envelopes.take_off(buffer, ends)
    # The others may have the envelope of another shard, or of another plan.
    if any([envelopes.add(values[row]) for row in np.flatnonzero(which < 0).tolist()]):
        which, flat, sizes = envelopes.take_off(buffer, ends)
    taken = np.flatnonzero(which >= 0)
    vectors, good = _decoder(columns).decode_buffer(flat, sizes[taken])
    found = dict(zip((name for name, _, _ in columns), vectors, strict=True))
    if time:
        times = found[time]
        good = good & (times.data <= END_OF_TIME) & (times.data >= -END_OF_TIME)
        if times.null is not None:
            good &= ~times.null
    tuples = UsualTuples(taken, envelopes.versions()[which[taken]], envelopes.late()[which[taken]], found)
    if not good.all():
        tuples = UsualTuples(
            taken[good],
            tuples.versions[good],
            tuples.late[good],
            {name: _without_marks(vector.take(good)) for name, vector in found.items()},
        )
    if len(tuples.rows) == len(values):
        return tuples, ()
    others = np.ones(len(values), np.bool_)
    others[tuples.rows] = False
    return tuples if len(tuples.rows) else None, np.flatnonzero(others).tolist()


class _KnownEnvelopes:
    """The ends of values that have been decoded, up to MOST_ENVELOPES, for a group that uses plan
    `version`.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._known: set[bytes] = set()
        self._tails: list[bytes] = []  # of tuples
        self._contents: list[tuple[int, bool]] = []  # of these: the plan's version, and whether it came late

    def add(self, value: bytes) -> bool:
        """Decode the end of a value; True if it is an envelope of tuples that wasn't known."""
        tail = value.rpartition(_MARK)[2]
        if tail in self._known or len(self._known) == MOST_ENVELOPES:
            return False
        self._known.add(tail)
        found = _envelope(tail, self._version)
        if found is None:
            return False
        self._tails.append(_MARK + tail)
        self._contents.append(found)
        return True

    def take_off(self, buffer: Bytes, ends: Ints) -> tuple[Ints, Bytes, Ints]:
        """Values without their envelopes, as by `without_suffixes`; at least one envelope is known."""
        found: tuple[Ints, Bytes, Ints] = without_suffixes(buffer, ends, *_joined(self._tails), _LAST)
        return found

    def versions(self) -> Ints:
        """The versions of the plans, by number of the envelope."""
        return np.array([version for version, _ in self._contents], np.int64)

    def late(self) -> NDArray[np.bool_]:
        """True where tuples came late, by number of the envelope."""
        return np.array([late for _, late in self._contents], np.bool_)


def _joined(values: Sequence[bytes]) -> tuple[Bytes, Ints]:
    """The values one after the other, and where each ends."""
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    return np.frombuffer(bytearray().join(values), np.uint8), np.cumsum(sizes)


def _envelope(tail: bytes, version: int) -> tuple[int, bool] | None:
    """The plan's version and whether the tuple came late; None if `tail` isn't the envelope of a tuple with
    the end of its value, or its plan is above `version`.
    """
    try:
        document = orjson.loads(b'{"%s":%s' % (ENVELOPE.encode(), tail))
    except orjson.JSONDecodeError:
        return None
    envelope = document[ENVELOPE]
    if len(document) > 1 or type(envelope) is not dict or envelope.get("kind") is not None:
        return None
    plan = envelope.get("plan")
    if type(plan) is not int or not 0 <= plan <= version:
        return None
    return plan, envelope.get("late") is True


# A decoder remembers texts, so that a key that comes again is not made again. A worker has the keys of
# several partitions.
@lru_cache(maxsize=16)
def _decoder(columns: Columns) -> FlatDecoder:
    # Edges send event times as integers: a text would be a mistake.
    types = {key: Type.BIGINT if type_.integral else type_ for _, key, type_ in columns}
    return FlatDecoder(types, "us", MOST_TEXTS)


def _without_marks(vector: Vector) -> Vector:
    return vector if vector.null is None or vector.null.any() else Vector(vector.data)

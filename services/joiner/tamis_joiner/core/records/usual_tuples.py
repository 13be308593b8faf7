"""Tuples of the usual form, decoded to columns without objects of Python for their values.

An edge writes a tuple as a flat JSON object, and appends the envelope, which is the same for many tuples. So
an envelope is decoded once in a batch, and the rest of the tuples by the compiled decoder of edges.
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
from tamis.recordings.flat_json.columns import FlatDecoder

# An envelope of the usual form and what precedes it: the end of a value.
_MARK = b',"%s":' % ENVELOPE.encode()
_ENDS = frozenset(b'"0123456789el')
# Envelopes of a batch that are remembered.
MOST_ENVELOPES = 64

Columns = tuple[tuple[str, str, Type], ...]
"""A column, its name in the documents, and its type."""


@dataclass(frozen=True)
class UsualTuples:
    """Tuples as columns: their rows among the records in ascending order, the plan versions under which they
    were sent, whether they came late, and their values.
    """

    rows: NDArray[np.int64]
    versions: NDArray[np.int64]
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
    known: dict[bytes, tuple[int, bool] | None] = {}
    rows: list[int] = []
    flat: list[bytes] = []
    versions: list[int] = []
    late: list[bool] = []
    for row, value in enumerate(values):
        head, _, tail = value.rpartition(_MARK)
        if tail in known:
            envelope = known[tail]
        elif len(known) < MOST_ENVELOPES:
            envelope = known[tail] = _envelope(tail, version)
        else:
            envelope = None
        if envelope is not None and head and head[-1] in _ENDS:
            rows.append(row)
            flat.append(head + b"}")
            versions.append(envelope[0])
            late.append(envelope[1])
    if not rows:
        return None, range(len(values))
    vectors, good = _decoder(columns).decode(flat)
    found = dict(zip((name for name, _, _ in columns), vectors, strict=True))
    if time:
        times = found[time]
        good = good & (times.data <= END_OF_TIME) & (times.data >= -END_OF_TIME)
        if times.null is not None:
            good &= ~times.null
    taken = np.array(rows, np.int64)
    tuples = UsualTuples(taken, np.array(versions, np.int64), np.array(late, np.bool_), found)
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


# A decoder remembers texts, so that a key that comes again is not made again.
@lru_cache(maxsize=16)
def _decoder(columns: Columns) -> FlatDecoder:
    # Edges send event times as integers: a text would be a mistake.
    types = {key: Type.BIGINT if type_.integral else type_ for _, key, type_ in columns}
    return FlatDecoder(types, "us")


def _without_marks(vector: Vector) -> Vector:
    return vector if vector.null is None or vector.null.any() else Vector(vector.data)

"""Decoder of payloads that are flat JSON objects, to one vector for each wanted field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Mask, NumberedTexts, Vector
from tamis.kernels import njit
from tamis.messaging.records import END_OF_TIME
from tamis.recordings.flat_json.scan import BOOLEAN, DOUBLE, INTEGER, TEXT, TIME, name_slot, scan
from tamis.recordings.flat_json.text_table import MANY, TextTable
from tamis.recordings.flat_json.tokens import string
from tamis.recordings.times import PER_SECOND, TimeUnit

# Payloads that are scanned at a time, and the most bytes of one. They are copied to one buffer.
SLICE = 1_000
MOST_BYTES = 4_096

_KINDS = {
    Type.DOUBLE: DOUBLE,
    Type.INT: INTEGER,
    Type.BIGINT: INTEGER,
    Type.BOOLEAN: BOOLEAN,
    Type.VARCHAR: TEXT,
    Type.TIMESTAMP: TIME,
}
_EMPTY = -1

_CLOSE = ord("}")


class FlatDecoder:
    """Decodes batches of payloads. What it understands has the values of `orjson` and `json_values`."""

    def __init__(self, fields: Mapping[str, Type], unit: TimeUnit, texts: int = MANY) -> None:
        """`fields`: the wanted fields of a payload, with the types of their columns. `unit`: of TIMESTAMPs
        that come as numbers. `texts`: the most different texts that are remembered.
        """
        encoded = [name.encode() for name in fields]
        self._types = list(fields.values())
        self._names = _bytes(b"".join(encoded))
        self._name_ends = np.cumsum([0, *map(len, encoded)])
        self._slots = _slots(encoded)
        self._kinds = np.array([_KINDS[type_] for type_ in self._types], np.int64)
        second, ticks = PER_SECOND[unit], PER_SECOND["us"]
        self._time_scale = np.array([max(ticks // second, 1), max(second // ticks, 1), END_OF_TIME], np.int64)
        self._table = TextTable(texts)

    def decode(self, payloads: Sequence[bytes]) -> tuple[list[Vector], Mask]:
        """A vector for each field, and which payloads were understood; the values of the others are
        undefined. A field that a payload lacks is NULL.
        """
        slices = (payloads[start : start + SLICE] for start in range(0, len(payloads), SLICE))
        return self._decode(
            ((bytearray().join(some), np.fromiter(map(len, some), np.int64, len(some))) for some in slices),
            len(payloads),
        )

    def decode_buffer(self, buffer: NDArray[np.uint8], sizes: NDArray[np.int64]) -> tuple[list[Vector], Mask]:
        """As `decode`, of payloads of these sizes that follow each other in a buffer."""
        ends = np.concatenate(([0], np.cumsum(sizes)))
        slices = (slice(start, min(start + SLICE, len(sizes))) for start in range(0, len(sizes), SLICE))
        return self._decode(
            ((bytearray(buffer[ends[one.start] : ends[one.stop]]), sizes[one]) for one in slices), len(sizes)
        )

    def _decode(
        self, slices: Iterable[tuple[bytearray, NDArray[np.int64]]], n: int
    ) -> tuple[list[Vector], Mask]:
        """Decode `n` payloads, given in slices of SLICE: their bytes and the size of each."""
        columns = len(self._types)
        cells, doubles = np.empty((columns, n), np.int64), np.empty((columns, n))
        null, understood = np.ones((columns, n), np.bool_), np.zeros(n, np.bool_)
        texts = [np.empty(n, np.object_) if type_ is Type.VARCHAR else None for type_ in self._types]
        table = self._table.identity
        for number, (buffer, sizes) in enumerate(slices):
            if sizes.max() > MOST_BYTES:
                continue
            start, ends = number * SLICE, np.cumsum(sizes)
            rows = slice(start, start + len(sizes))
            understood[rows] = self._scan(buffer, ends, cells, doubles, null, start)
            forgotten = False
            # The texts of one slice may be more than an empty table takes: then some are left.
            while self._table.full[0] and not forgotten:
                forgotten = self._table.make_room()
                understood[rows] = self._scan(buffer, ends, cells, doubles, null, start)
            for column, into in enumerate(texts):
                if into is not None:
                    np.maximum(cells[column, rows], 0, out=cells[column, rows])
                    into[rows] = self._table.strings(cells[column, rows])
        vectors = [
            _vector(type_, doubles[column] if type_ is Type.DOUBLE else cells[column], into, null[column])
            for column, (type_, into) in enumerate(zip(self._types, texts, strict=True))
        ]
        if understood.all() and self._table.identity is table:
            for column, type_ in enumerate(self._types):
                if type_ is Type.VARCHAR:
                    vector = vectors[column]
                    vectors[column] = NumberedTexts(
                        vector.data, vector.null, numbers=cells[column], table=table
                    )
        return vectors, understood

    def _scan(
        self,
        buffer: bytearray,
        ends: NDArray[np.int64],
        cells: NDArray[np.int64],
        doubles: NDArray[np.float64],
        null: Mask,
        start: int,
    ) -> Mask:
        table = self._table
        found: Mask = scan(
            np.frombuffer(buffer, np.uint8),
            ends,
            _is_utf8(buffer),
            self._names,
            self._name_ends,
            self._slots,
            self._kinds,
            self._time_scale,
            cells,
            doubles,
            null,
            start,
            table.slots,
            table.ends,
            table.texts,
            table.full,
        )
        return found


def _vector(type_: Type, data: NDArray[np.generic], texts: NDArray[np.object_] | None, null: Mask) -> Vector:
    if texts is not None:
        data = texts
    elif type_ is Type.BOOLEAN:
        data = data.astype(np.bool_)
    return Vector(data, null if null.any() else None)


def _is_utf8(buffer: bytearray) -> bool:
    """True if all payloads together are UTF-8. No character of an understood payload continues in the next
    one, since its first and its last byte are ASCII.
    """
    if buffer.isascii():
        return False  # nothing else than ASCII need be accepted
    try:
        buffer.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(text), np.uint8)


def _slots(names: Sequence[bytes]) -> NDArray[np.int64]:
    """A hash table of the names, at most a quarter full, by the kernels' own hash."""
    slots = np.full(1 << (4 * len(names)).bit_length(), _EMPTY, np.int64)
    for number, name in enumerate(names):
        # A name that can't be written without escapes is never found.
        quoted = _bytes(name + b'"')
        stop, value = string(quoted, 0, len(quoted), True)
        if stop != len(name):
            continue
        slot = int(name_slot(np.uint64(value), len(slots)))
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = number
    return slots


@njit(cache=True)
def without_suffixes(buffer, ends, suffixes, suffix_ends, last):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Take the suffix off each payload that ends with one of `suffixes`, and close its object again.

    `buffer`: the payloads one after the other; `ends`: where each ends. `suffixes` and `suffix_ends`: the
    suffixes in the same form, of which no two fit one payload. `last`: for each byte, whether a payload may
    have it before its suffix; with another one it is left. Returns the number of each payload's suffix, -1
    if it is left; the new payloads one after the other, without those that are left; and the size of each, 0
    if it is left.
    """
    which, sizes = np.full(len(ends), -1, np.int64), np.zeros(len(ends), np.int64)
    flat = np.empty(len(buffer) + len(ends), np.uint8)
    written = end = latest = 0
    for row in range(len(ends)):
        start, end = end, ends[row]
        for probe in range(len(suffix_ends) + 1):
            # Most payloads have the suffix of the one before.
            number = latest if probe == 0 else probe - 1
            first = 0 if number == 0 else suffix_ends[number - 1]
            size = suffix_ends[number] - first
            head = end - size
            same = head > start
            place = 0
            while same and place < size:
                same = buffer[head + place] == suffixes[first + place]
                place += 1
            if not same:
                continue
            latest = number
            if last[buffer[head - 1]]:
                for place in range(start, head):
                    flat[written] = buffer[place]
                    written += 1
                flat[written] = _CLOSE
                written += 1
                sizes[row] = head - start + 1
                which[row] = number
            break
    return which, flat[:written], sizes

"""The compiled loop over payloads: one flat object each, its wanted fields to columns."""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.recordings.flat_json.text_table import equal, number_of, text_slot
from tamis.recordings.flat_json.tokens import (
    BACKSLASH,
    HASH,
    MINUS,
    MOST_DIGITS,
    NINE,
    NO_TIME,
    POINT,
    PRIME,
    QUOTE,
    TEN,
    ZERO,
    is_space,
    iso_time,
    literal,
    nearest,
    number,
    string,
)

DOUBLE, INTEGER, BOOLEAN, TEXT, TIME = range(5)
"""The kinds of columns."""
_BOUND = np.uint64(2**63)
_NOT_WANTED = -1
# Fields of a payload whose names are compared with those of the last payload.
_FIELDS = 64


@njit(cache=True)
def name_slot(value, size):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The first slot for a name with this hash in a table of `size` slots, a power of two."""
    return np.int64((value ^ (value >> np.uint64(32))) & np.uint64(size - 1))


@njit(cache=True)
def _column(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    buffer, start, stop, value, names, name_ends, name_slots
):
    """The column of a field's name; -1 if it isn't wanted."""
    slot = name_slot(value, len(name_slots))
    while name_slots[slot] >= 0:
        column = name_slots[slot]
        size = name_ends[column + 1] - name_ends[column]
        if size == stop - start and equal(buffer, start, size, names, name_ends[column]):
            return column
        slot = (slot + 1) & (len(name_slots) - 1)
    return -1


@njit(cache=True)
def scan(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    buffer, ends, utf8, names, name_ends, name_slots, kinds, time_scale, cells, doubles, null, row,
    slots, text_ends, texts, full,
):  # fmt: skip
    """Decode payloads into columns; returns for each if it was understood. The cells of a payload that was
    not are undefined.

    `buffer`: the payloads one after the other; `ends`: where each ends. `names`, `name_ends`: the UTF-8 of
    the wanted fields, of which `name_slots` is a hash table (-1: empty). `kinds`: of the columns.
    `time_scale`: what numbers of times are multiplied by, then divided by, and the limit of times.
    `cells`, int64, `doubles` and `null`: the results by column and row, from `row` on. The last four are the
    arrays of a `TextTable`.

    It is one function, since a call costs more than a field: numba counts references to all arrays that it
    passes, by atomic operations.
    """
    understood = np.zeros(len(ends), np.bool_)
    columns = len(kinds)
    seen = np.full(columns, -1, np.int64)
    # Of the last payload: where the name of each of its fields is, and the column of the field.
    name_start, name_size = np.zeros(_FIELDS, np.int64), np.full(_FIELDS, -1, np.int64)
    name_column = np.zeros(_FIELDS, np.int64)
    mask = np.uint64(len(slots) - 1)
    limit = time_scale[2]
    numbers = limit // time_scale[0] * time_scale[1]
    end = 0
    for payload in range(len(ends)):
        at, end = end, ends[payload]
        for column in range(columns):
            null[column, row] = True
            cells[column, row] = 0
            doubles[column, row] = 0.0
        while at < end and is_space(buffer[at]):
            at += 1
        more = at < end and buffer[at] == 123
        good = more
        at += 1
        while more and at < end and is_space(buffer[at]):
            at += 1
        if more and at < end and buffer[at] == 125:
            more = False
        field = -1
        while more:
            # ---- the name, which is most often the last payload's
            good = more = False
            field = min(field + 1, _FIELDS - 1)
            if at >= end or buffer[at] != QUOTE:
                break
            at += 1
            size, known = name_size[field], name_start[field]
            same = size >= 0 and at + size < end and buffer[at + size] == QUOTE
            place = 0
            while same and place < size:
                same = buffer[at + place] == buffer[known + place]
                place += 1
            if not same:
                stop, value = string(buffer, at, end, utf8)
                if stop < 0:
                    break
                size = name_size[field] = stop - at
                name_column[field] = _column(buffer, at, stop, value, names, name_ends, name_slots)
            name_start[field] = at
            column = name_column[field]
            kind = _NOT_WANTED
            if column >= 0:
                kind = kinds[column]
                # Of two fields with one name, orjson takes the last.
                if seen[column] == row:
                    break
                seen[column] = row
            at += size + 1
            while at < end and is_space(buffer[at]):
                at += 1
            if at >= end or buffer[at] != 58:
                break
            at += 1
            while at < end and is_space(buffer[at]):
                at += 1
            if at >= end:
                break
            # ---- the value
            first = buffer[at]
            if first == QUOTE:
                at += 1
                start, value, byte = at, HASH, QUOTE
                while at < end:
                    byte = buffer[at]
                    if byte in (QUOTE, BACKSLASH) or byte < 32 or (byte > 127 and not utf8):
                        break
                    value = (value ^ np.uint64(byte)) * PRIME
                    at += 1
                if at >= end or byte != QUOTE:
                    break
                if kind == TEXT:
                    number_ = slots[np.int64(text_slot(value) & mask)]
                    size = at - start
                    same = number_ > 0 and text_ends[number_ + 1] - text_ends[number_] == size
                    place = 0
                    while same and place < size:
                        same = buffer[start + place] == texts[text_ends[number_] + place]
                        place += 1
                    if not same:
                        number_ = number_of(buffer, start, at, value, slots, text_ends, texts, full)
                        if number_ < 0:
                            break
                    cells[column, row] = number_
                elif kind == TIME:
                    cells[column, row] = iso_time(buffer, start, at)
                    if cells[column, row] == NO_TIME or abs(cells[column, row]) >= limit:
                        break
                elif kind != _NOT_WANTED:
                    break
                at += 1
            elif first == MINUS or ZERO <= first <= NINE:
                start = at
                negative = first == MINUS
                if negative:
                    at += 1
                mantissa, begin = np.uint64(0), at
                while at < end and ZERO <= buffer[at] <= NINE:
                    mantissa = mantissa * TEN + np.uint64(buffer[at] - ZERO)
                    at += 1
                digits, exponent = at - begin, 0
                if digits == 0 or (digits > 1 and buffer[begin] == ZERO):
                    break
                integral = at >= end or buffer[at] != POINT
                if not integral:
                    at += 1
                    begin = at
                    while at < end and ZERO <= buffer[at] <= NINE:
                        mantissa = mantissa * TEN + np.uint64(buffer[at] - ZERO)
                        at += 1
                    exponent = begin - at
                    if exponent == 0:
                        break
                    digits -= exponent
                if digits > MOST_DIGITS or (at < end and (buffer[at] == 101 or buffer[at] == 69)):
                    at, negative, mantissa, exponent, integral = number(buffer, start, end)
                    if at < 0:
                        break
                if kind == DOUBLE:
                    double = nearest(mantissa, exponent)
                    # The integer -0 is 0.
                    if negative and not (integral and double == 0.0):
                        double = -double
                    doubles[column, row] = double
                elif kind != _NOT_WANTED:
                    if not integral or mantissa >= _BOUND:
                        break
                    whole = -np.int64(mantissa) if negative else np.int64(mantissa)
                    if kind == TIME:
                        if abs(whole) >= numbers:
                            break
                        whole = whole * time_scale[0] // time_scale[1]
                        if abs(whole) >= limit:
                            break
                    elif kind != INTEGER:
                        break
                    cells[column, row] = whole
            else:
                at = literal(buffer, at, end)
                if at < 0:
                    break
                if first != 110 and kind != _NOT_WANTED:
                    if kind != BOOLEAN:
                        break
                    cells[column, row] = first == 116
            if column >= 0 and first != 110:
                null[column, row] = False
            # ---- what follows
            while at < end and is_space(buffer[at]):
                at += 1
            good = at < end
            if good and buffer[at] == 44:
                more = True
                at += 1
                while at < end and is_space(buffer[at]):
                    at += 1
        if good and at < end and buffer[at] == 125:
            at += 1
            while at < end and is_space(buffer[at]):
                at += 1
            understood[payload] = at == end
        row += 1
    return understood

"""The compiled loop that takes known last fields off payloads, such as the envelope of a tuple."""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit

_CLOSE = ord("}")


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

"""Times of ISO 8601 in microseconds, by Arrow for columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def iso_ticks(texts: Any) -> Any:
    """Arrow's texts of ISO 8601 as microseconds, where all have a zone or none has.

    Raises ArrowInvalid for all else.
    """
    try:
        ticks = texts.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        ticks = texts.cast(pa.timestamp("us"))
    return ticks.cast(pa.int64())


def column_ticks(texts: Sequence[str]) -> npt.NDArray[np.int64] | None:
    """A column of texts as microseconds; None if `iso_ticks` can't convert all of them.

    >>> column_ticks(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00+01:00"]).tolist()
    [1000000, 0]
    >>> column_ticks(["noon"])
    """
    try:
        found: npt.NDArray[np.int64] = iso_ticks(pa.array(texts)).to_numpy()
    except pa.ArrowInvalid:
        return None
    return found


def iso_time(text: str) -> int:
    """A time of ISO 8601 in microseconds, UTC where no zone is given. Raises ValueError for what is none.

    >>> iso_time("1970-01-01t00:00:01z")  # RFC 3339 also has small letters
    1000000
    """
    text = text.upper()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        # It has no year 0, which Arrow takes where all texts are alike.
        return int(iso_ticks(pa.array([text]))[0].as_py())
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _TICK

"""Names of columns that belong to an event of an episode. They are in headers of its record.

They aren't in its value: earlier versions would refuse a value with a further member, and never notify of the
event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

COLUMNS, TIMES = "columns", "times"

T = TypeVar("T")

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class ColumnNames(Struct, frozen=True):
    """Names of the values of an episode's `key`, if they are known.

    `key_times` and `row_times` name the columns of the key and of the row that are times.
    """

    key: tuple[str, ...] = ()
    key_times: tuple[str, ...] = ()
    row_times: tuple[str, ...] = ()

    def times_of(self, key: Sequence[Any]) -> tuple[int, ...]:
        """The positions of the values of a key that are times; none if the names are unknown.

        >>> ColumnNames(("station", "begin"), key_times=("begin",)).times_of(["k", 5])
        (1,)
        """
        if len(self.key) != len(key):
            return ()
        return tuple(place for place, name in enumerate(self.key) if name in self.key_times)

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The headers of the event's record.

        >>> ColumnNames(("station",), row_times=("ts",)).headers
        [('columns', b'["station"]'), ('times', b'{"key":[],"row":["ts"]}')]
        """
        found = [(COLUMNS, _encode(self.key))] if self.key else []
        if self.key_times or self.row_times:
            found.append((TIMES, _encode(_Times(self.key_times, self.row_times))))
        return found

    @staticmethod
    def of(headers: Headers | None) -> ColumnNames:
        """The names in the headers of a record. A header that is missing or can't be read gives none."""
        found = dict(headers or ())
        key = _read(_key_decoder, found.get(COLUMNS), ())
        times = _read(_times_decoder, found.get(TIMES), _Times())
        return ColumnNames(key, times.key, times.row)


UNNAMED = ColumnNames()


class _Times(Struct, frozen=True):
    key: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


_encode = msgspec.json.Encoder().encode
_key_decoder = msgspec.json.Decoder(tuple[str, ...])
_times_decoder = msgspec.json.Decoder(_Times)


def _read(decoder: msgspec.json.Decoder[T], value: str | bytes | None, without: T) -> T:
    try:
        return without if value is None else decoder.decode(value)
    except msgspec.MsgspecError:
        return without

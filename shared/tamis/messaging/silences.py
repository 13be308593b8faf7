"""Records of `tamis.silences`: silences, acknowledgements of episodes, and held openings.

The registry writes silences and acknowledgements. The alerts service writes held openings: events of episodes
that a silence covered when a sink would have been notified of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from tamis.errors import InputError
from tamis.query.units import parse_timestamp

SILENCE, ACKNOWLEDGEMENT, HELD = "silence", "acknowledgement", "held"


class Silence(Struct, frozen=True, kw_only=True, tag_field="kind", tag=SILENCE):
    """A time in which some sinks aren't notified of some episodes. Times are in microseconds since 1970.

    An episode has to meet all conditions. None, or no labels: every episode meets it. `by` is the name of the
    token that made the silence, or what a caller without a token gave.
    """

    id: str
    start: int = msgspec.field(name="from")
    until: int
    alerts: tuple[str, ...] | None = None
    severities: tuple[str, ...] | None = None
    labels: dict[str, tuple[str, ...]] = {}
    keys: tuple[tuple[Any, ...], ...] | None = None
    by: str = ""
    comment: str = ""
    made: int = 0

    @property
    def record_key(self) -> bytes:
        """The key of its record."""
        return f"{SILENCE}/{self.id}".encode()


def covers(silence: Silence, episode: Mapping[str, Any], now: int) -> bool:
    """True if a silence covers an episode at the time `now`: it has begun, isn't over, and the episode meets
    all of its conditions.
    """
    return (
        silence.start <= now < silence.until
        and (silence.alerts is None or episode["alert"] in silence.alerts)
        and (silence.severities is None or (episode["severity"] or "") in silence.severities)
        and all(episode["labels"].get(name, "") in values for name, values in silence.labels.items())
        and (silence.keys is None or any(_same(wanted, episode["key"]) for wanted in silence.keys))
    )


def _same(wanted: Sequence[Any], key: Sequence[Any]) -> bool:
    return len(wanted) == len(key) and all(map(_stands_for, wanted, key))


def _stands_for(wanted: Any, value: Any) -> bool:
    """True if a value in a silence means one in a key. Who writes a silence by hand gives a number as a text,
    and a time as others show it.
    """
    if _text(wanted) == _text(value):
        return True
    return isinstance(wanted, str) and type(value) is int and _moment(wanted) == value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


@lru_cache(maxsize=10_000)
def _moment(text: str) -> int | None:
    """The time of an ISO 8601 text, in microseconds; None if it isn't one."""
    try:
        return parse_timestamp(text)
    except InputError:
        return None


class Acknowledgement(Struct, frozen=True, kw_only=True, tag_field="kind", tag=ACKNOWLEDGEMENT):
    """Somebody looks after an episode. The record is kept until `until`.

    `alert` and `key` are those of the episode; None if they weren't known. `key_times`: the positions of the
    values in the key that are times.
    """

    episode: str
    alert: str | None = None
    key: tuple[Any, ...] | None = None
    key_times: tuple[int, ...] = ()
    by: str = ""
    comment: str = ""
    made: int
    until: int

    @property
    def record_key(self) -> bytes:
        """The key of its record."""
        return f"{ACKNOWLEDGEMENT}/{self.episode}".encode()


class Held(Struct, frozen=True, kw_only=True, tag_field="kind", tag=HELD):
    """The event that opened an episode, of which a sink isn't notified while a silence covers it.

    `partition` and `offset` are those of the event in `tamis.episodes`. `columns` has the names of the values
    of its key, `key_times` and `row_times` those of columns of its key and its row that are times.

    `closed` is the offset of the event that closed the episode, which the sink doesn't get either.
    """

    sink: str
    partition: int
    offset: int
    event: dict[str, Any]
    closed: int | None = None
    columns: tuple[str, ...] = ()
    key_times: tuple[str, ...] = ()
    row_times: tuple[str, ...] = ()

    @property
    def episode(self) -> str:
        """The identity of the episode."""
        return str(self.event["episode"])

    @property
    def record_key(self) -> bytes:
        """The key of its record."""
        return f"{HELD}/{self.sink}/{self.episode}".encode()


Record = Silence | Acknowledgement | Held

_decoder = msgspec.json.Decoder(Record)
_encode = msgspec.json.Encoder().encode


def encode(record: Record) -> bytes:
    """The value of a record."""
    return _encode(record)


def decode(value: bytes) -> Record:
    """The record of a value; members that this version doesn't know are ignored. Raises ValueError."""
    try:
        record: Record = _decoder.decode(value)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return record

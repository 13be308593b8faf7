"""Records of `tamis.silences`: silences, acknowledgements of episodes, and held openings.

The registry writes silences and acknowledgements. The alerts service writes held openings: events of episodes
that a silence covered when a sink would have been notified of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from tamis.declarations.units import parse_timestamp
from tamis.errors import InputError
from tamis.messaging.records import Integer, decoded

SILENCE, ACKNOWLEDGEMENT, HELD = "silence", "acknowledgement", "held"

# A value of a key.
Value = str | Integer | float | bool | None


class Silence(Struct, frozen=True, kw_only=True, tag_field="kind", tag=SILENCE):
    """A time in which some sinks aren't notified of some episodes. Times are in microseconds since 1970.

    An episode has to meet all conditions. None, or no labels: every episode meets it. `by` is the name of the
    token that made the silence, or what a caller without a token gave.
    """

    id: str
    start: Integer = msgspec.field(name="from")
    until: Integer
    alerts: tuple[str, ...] | None = None
    severities: tuple[str, ...] | None = None
    labels: dict[str, tuple[str, ...]] = {}
    keys: tuple[tuple[Value, ...], ...] | None = None
    by: str = ""
    comment: str = ""
    made: Integer = 0

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
    key: tuple[Value, ...] | None = None
    key_times: tuple[Integer, ...] = ()
    by: str = ""
    comment: str = ""
    made: Integer
    until: Integer

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
    partition: Integer
    offset: Integer
    event: dict[str, Any]
    closed: Integer | None = None
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


def decode(key: bytes | None, value: bytes) -> Record:
    """The record of a key and a value; members that this version doesn't know are ignored. Raises ValueError
    for a value that no service has written, and for one that has another key.
    """
    record: Record = decoded(_decoder, value)
    if isinstance(record, Held):
        check_event(record.event)
    if record.record_key != key:
        raise ValueError(f"it is the record of the key {record.record_key.decode()!r:.300}")
    return record


class _Event(Struct):
    """The members of an event of an episode that services read."""

    # It is in headers of HTTP and of e-mails.
    episode: Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,200}\Z")]
    alert: str
    event: Literal["opened", "open", "closed"]
    key: tuple[Value, ...]
    start: Integer
    end: Integer
    alarms: Integer
    row: dict[str, Any]
    severity: str | None
    labels: dict[str, str]


def check_event(event: object) -> None:
    """Raises ValueError unless this is an event of an episode."""
    try:
        msgspec.convert(event, _Event)
    except msgspec.ValidationError as error:
        raise ValueError(f"no event of an episode: {error}") from None

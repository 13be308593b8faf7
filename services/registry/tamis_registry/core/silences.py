"""Silences and acknowledgements of the fleet: what is asked for, what is kept, and for how long."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import orjson

from tamis.errors import InputError, RefusedError
from tamis.messaging.silences import Acknowledgement, Held, Silence, covers, decode, encode
from tamis.query.model import Catalog
from tamis.wording.names import normalized_name, suggest
from tamis_registry.core.errors import MissingError, lists

SECOND = 1_000_000
DAY = 86_400 * SECOND
# The alerts service compares each opening with all silences.
MOST = 10_000
# Of one record. A thousand keys of usual length have half of it.
MOST_BYTES = 64 * 1024
# A silence that somebody forgets ends at some time.
LONGEST = 30 * DAY
# An acknowledgement is kept as long as `tamis.episodes` keeps an event.
ACKNOWLEDGED = 7 * DAY
# After its end a silence is shown for a day.
SHOWN = DAY

_VALUES = "give texts, finite numbers, integers of 64 bits, true, false or null"

Kept = Silence | Acknowledgement


@dataclass(frozen=True)
class Wanted:
    """A silence as somebody asks for it. Times are microseconds; `until` or `seconds` gives its end."""

    alerts: Sequence[str] | None
    severities: Sequence[str] | None
    labels: Mapping[str, Sequence[str]]
    keys: Sequence[Sequence[Any]] | None
    start: int | None
    until: int | None
    seconds: float | None
    by: str
    comment: str

    def silence(self, identity: str, catalog: Catalog, now: int) -> Silence:
        """The silence. Raises InputError if it covers nothing, everything, or an impossible time."""
        start = now if self.start is None else self.start
        return Silence(
            id=identity,
            start=start,
            until=self._end(start, now),
            alerts=None if self.alerts is None else tuple(_alerts(self.alerts, catalog)),
            severities=None if self.severities is None else _some(self.severities, "severities"),
            labels={name: _some(values, f"labels.{name}") for name, values in self._labels().items()},
            keys=None if self.keys is None else tuple(tuple(key) for key in _some(self.keys, "keys")),
            by=self.by,
            comment=self.comment,
            made=now,
        )

    def _labels(self) -> Mapping[str, Sequence[str]]:
        if self.alerts is None and self.severities is None and self.keys is None and not self.labels:
            raise InputError(
                "a silence without a condition would cover every alert",
                hint="give alerts, severities, labels or keys",
            )
        return self.labels

    def _end(self, start: int, now: int) -> int:
        if (self.until is None) == (self.seconds is None):
            raise InputError("a silence needs an end", hint="give `until` or `seconds`, one of them")
        until = start + int((self.seconds or 0) * SECOND) if self.until is None else self.until
        if until <= max(start, now):
            raise InputError("the silence would be over at once", where="until", hint="give a later end")
        if until - start > LONGEST or start - now > LONGEST:
            days = LONGEST // DAY
            raise InputError(f"a silence begins within {days} days, and lasts {days} days at most")
        return until


def _alerts(names: Sequence[str], catalog: Catalog) -> Iterable[str]:
    for name in _some(names, "alerts"):
        found = normalized_name(name, catalog.alerts)
        if found not in catalog.alerts:
            hint = suggest(found, list(catalog.alerts), lists("alerts"))
            raise InputError(f"there is no alert '{name}'", where="alerts", hint=hint)
        yield found


def _some(values: Sequence[Any], name: str) -> tuple[Any, ...]:
    if not values:
        raise InputError("an empty list covers nothing", where=name, hint="leave it out to cover all")
    return tuple(values)


def doubts(silence: Silence, catalog: Catalog) -> Iterator[str]:
    """The severities and labels of a silence that no alert has, each with the most similar one that there is.

    They are no mistake: the alert may come later.
    """
    options = [alert.options for alert in catalog.alerts.values()]
    severities = {one.severity for one in options if one.severity}
    for severity in silence.severities or ():
        # The empty text stands for alerts without a severity, or without the label.
        if severity and severity not in severities:
            yield f"no alert has the severity '{severity}'; {_nearest(severity, severities)}"
    labels: dict[str, set[str]] = {}
    for name, value in (pair for one in options for pair in one.labels):
        labels.setdefault(name, set()).add(value)
    for name, values in silence.labels.items():
        for value in filter(None, values):
            if name not in labels:
                yield f"no alert has a label '{name}'; {_nearest(name, labels)}"
                break
            if value not in labels[name]:
                yield f"no alert has the label '{name}={value}'; {_nearest(value, labels[name])}"


def _nearest(word: str, known: Iterable[str]) -> str:
    names = ", ".join(sorted(known))
    return suggest(word, known, f"there are: {names}" if names else "no alert has any")


@dataclass(frozen=True)
class AcknowledgedEpisode:
    """An episode that somebody looks after, as `Acknowledgement` has it."""

    identity: str
    alert: str | None = None
    key: tuple[Any, ...] | None = None
    key_times: tuple[int, ...] = ()


def acknowledgement(episode: AcknowledgedEpisode, by: str, comment: str, now: int) -> Acknowledgement:
    """The acknowledgement of an episode."""
    return Acknowledgement(
        episode=episode.identity,
        alert=episode.alert,
        key=episode.key,
        key_times=episode.key_times,
        by=by,
        comment=comment,
        made=now,
        until=now + ACKNOWLEDGED,
    )


def check_writable(kept: Kept) -> None:
    """Raises InputError for a record that Kafka can't have as it is.

    It stays in Kafka for weeks, and every service reads it, so it is read here before it is written.
    """
    try:
        value = encode(kept)
        same = decode(kept.record_key, value) == kept
        orjson.dumps(msgspec.to_builtins(kept))  # as answers have it
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"a value can't be written: {error}", hint=_VALUES) from None
    if not same:
        raise InputError("a value changes when it is written", hint=_VALUES)
    if len(value) > MOST_BYTES:
        hint = "name fewer alerts, labels or keys; or make several silences"
        raise InputError(f"it would have {len(value)} bytes, and at most {MOST_BYTES} are kept", hint=hint)


class Silences:
    """The silences and acknowledgements in Kafka, by the keys of their records."""

    def __init__(self, records: Mapping[bytes, Kept] | None = None) -> None:
        self._records = dict(records or {})

    def take(self, changed: Mapping[bytes, Kept | None]) -> None:
        """Adopt changes that were written. None: the record was removed."""
        # A copy: HTTP threads may read the old one.
        records = {**self._records, **changed}
        self._records = {key: kept for key, kept in records.items() if kept is not None}

    @property
    def silences(self) -> list[Silence]:
        """All silences, in the order of their ends."""
        found = [kept for kept in self._records.values() if isinstance(kept, Silence)]
        return sorted(found, key=lambda one: (one.until, one.id))

    @property
    def acknowledgements(self) -> list[Acknowledgement]:
        """All acknowledgements, the newest first."""
        found = [kept for kept in self._records.values() if isinstance(kept, Acknowledgement)]
        return sorted(found, key=lambda one: (-one.made, one.episode))

    def acknowledged(self, beginning: str) -> str:
        """The identity of the only acknowledged episode that begins so; `beginning` if there is none.

        Raises InputError if there are several.
        """
        found = [one.episode for one in self.acknowledgements if one.episode.startswith(beginning)]
        if len(found) > 1:
            what = f"several acknowledged episodes begin with '{beginning}'"
            raise InputError(what, hint=lists("acknowledgements"))
        return found[0] if found else beginning

    def added(self, kept: Kept) -> dict[bytes, Kept | None]:
        """The change that adds a record. Raises InputError if it can't be written and read again, and
        RefusedError if there are too many of its kind.
        """
        check_writable(kept)
        if kept.record_key not in self._records:
            count = sum(type(one) is type(kept) for one in self._records.values())
            if count >= MOST:
                raise RefusedError(f"there are {MOST:,} already", hint="end those that nobody needs")
        return {kept.record_key: kept}

    def removed(self, key: bytes) -> dict[bytes, Kept | None]:
        """The change that removes a record. Raises MissingError."""
        if key not in self._records:
            kind, _, name = key.decode().partition("/")
            raise MissingError(f"there is no {kind} '{name}'", hint=lists(f"{kind}s"))
        return {key: None}

    def over(self, now: int) -> dict[bytes, Kept | None]:
        """The change that removes what nobody needs any more."""
        return {
            key: None
            for key, kept in self._records.items()
            if kept.until + (SHOWN if isinstance(kept, Silence) else 0) <= now
        }


class HeldOpening(NamedTuple):
    """An opening that one sink has not got. Silences cover its episode by these `facts`. If the episode has
    closed, nobody gets it any more.
    """

    sink: str
    episode: str
    facts: Mapping[str, Any]
    closed: bool


class HeldBack(NamedTuple):
    """The openings that a silence holds back now, one for each sink, and the number of their episodes."""

    episodes: int = 0
    notifications: int = 0


class _Facts(msgspec.Struct):
    episode: str
    alert: str
    key: tuple[Any, ...]
    severity: str | None
    labels: dict[str, str]


def held_opening(held: Held) -> HeldOpening:
    """The opening of a record."""
    facts = msgspec.convert(held.event, _Facts)
    return HeldOpening(held.sink, facts.episode, msgspec.structs.asdict(facts), held.closed is not None)


@dataclass
class HeldOpenings:
    """The held openings of all sinks, by the keys of their records in Kafka."""

    _records: dict[bytes, HeldOpening] = field(default_factory=dict)

    def take(self, key: bytes, opening: HeldOpening | None) -> None:
        """Take a record. None: it was removed."""
        self._records.pop(key, None)
        if opening is not None and not opening.closed:
            self._records[key] = opening

    def of_sinks(self, sinks: Container[str] | None) -> list[HeldOpening]:
        """Those of some sinks; None: all of them. The openings of a sink that was removed stay in Kafka."""
        return [one for one in self._records.values() if sinks is None or one.sink in sinks]


def held_back(silences: Iterable[Silence], openings: Sequence[HeldOpening], now: int) -> dict[str, HeldBack]:
    """Counts of the openings that each active silence holds back now, by its identity. An opening that
    several silences cover counts for each of them.
    """
    by_alert: dict[str, list[HeldOpening]] = {}
    for one in openings:
        by_alert.setdefault(one.facts["alert"], []).append(one)
    found = {}
    for silence in silences:
        if not silence.start <= now < silence.until:
            continue
        # There may be thousands of both.
        of_alerts = openings if silence.alerts is None else _of(by_alert, silence.alerts)
        covered = [one.episode for one in of_alerts if covers(silence, one.facts, now)]
        found[silence.id] = HeldBack(len(set(covered)), len(covered))
    return found


def _of(by_alert: Mapping[str, list[HeldOpening]], alerts: Iterable[str]) -> list[HeldOpening]:
    return [one for alert in dict.fromkeys(alerts) for one in by_alert.get(alert, ())]

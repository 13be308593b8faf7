"""The open episode that the beginning of an identity stands for, looked up in the topic of episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from confluent_kafka import Message

from tamis.errors import InputError, UnavailableError
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.topics import EPISODES
from tamis_registry.core.errors import MissingError
from tamis_registry.core.silences import AcknowledgedEpisode
from tamis_registry.kafka.newest import NewestReader

LENGTH = 32  # of an identity
MOST = 500  # events that are looked at, of all episodes that begin so
_HINT = "`tamis watch` shows the identity of each episode"


@dataclass(frozen=True)
class Event:
    """An event of an episode, and what happened: `opened`, `open` or `closed`."""

    episode: AcknowledgedEpisode
    what: str


def open_episode(reader: NewestReader, beginning: str) -> AcknowledgedEpisode:
    """The only open episode whose identity begins so.

    Raises MissingError if there is none, InputError if there are several. A whole identity is taken as it is,
    without alert and key, if the topic can't be read, or is too long to be read to its beginning: the episode
    may be older than what was read.
    """
    whole = len(beginning) == LENGTH
    try:
        found = reader.read([EPISODES], _beginning(beginning), 1 if whole else MOST)
    except UnavailableError:
        # A registry that doesn't show readings needs no right on this topic.
        if whole:
            return AcknowledgedEpisode(beginning)
        raise
    events = [entry.value for entry in found.entries]
    # One event is enough for a whole identity, so nothing was left out.
    return chosen(beginning, events, complete=found.complete or bool(whole and events))


def chosen(beginning: str, events: Sequence[Event], *, complete: bool) -> AcknowledgedEpisode:
    """The same for events that begin so, the newest first. `complete`: there are no others."""
    newest: dict[str, Event] = {}
    for event in events:
        newest.setdefault(event.episode.identity, event)
    running = [event.episode for event in newest.values() if event.what != "closed"]
    if len(running) == 1:
        return running[0]
    if running:
        raise InputError(f"several open episodes begin with '{beginning}'", where="episode", hint=_HINT)
    if not complete and len(beginning) == LENGTH:
        return AcknowledgedEpisode(beginning)
    closed = "; the episode has closed" if newest else ""
    identity = "the identity" if len(beginning) == LENGTH else "an identity that begins with"
    raise MissingError(f"no open episode has {identity} '{beginning}'{closed}", hint=_HINT)


def _beginning(beginning: str) -> Callable[[Message], Event | None]:
    start = orjson.dumps(beginning)[:-1]

    def pick(message: Message) -> Event | None:
        value = message.value() or b""
        if start not in value:
            return None
        record = orjson.loads(value)
        identity, event = record["episode"], record["event"]
        alert, key = record["alert"], record["key"]
        if not all(type(text) is str for text in (identity, event, alert)) or type(key) is not list:
            raise TypeError("no episode")
        if not identity.startswith(beginning):
            return None
        times = ColumnNames.of(message.headers()).times_of(key)
        return Event(AcknowledgedEpisode(identity, alert, tuple(key), times), event)

    return pick

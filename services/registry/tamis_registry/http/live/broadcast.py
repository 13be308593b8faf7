"""Messages for clients that listen: what changes in the fleet, and alarms and episodes as they come.

One thread watches for all listeners. It starts with the first listener and ends with the last, and each
listener has a queue of limited length.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from tamis.errors import UnavailableError
from tamis.messaging.topic_reader import Record, TopicReader
from tamis.messaging.topics import ALARMS, EPISODES
from tamis.settings import KafkaSettings
from tamis.telemetry import get_logger
from tamis_registry.core.state.model import Stored
from tamis_registry.core.status import View, alert_status, edge_state, shard_state
from tamis_registry.http.documents.edges import every_shard, failing_sources
from tamis_registry.http.documents.streams import stream_facts
from tamis_registry.registry_loop import RegistryLoop

MOST_LISTENERS = 64
LONGEST_QUEUE = 200  # messages that wait for one listener
MOST_NAMES = 100  # in one message
REMEMBERED = 500  # messages that a listener that comes back can still get
# The fleet's documents are compared at most so often, and for at most this share of the time: with thousands
# of edges that takes a part of a second.
LOOK_SECONDS = 1.0
LOOK_SHARE = 0.1
# After an error of Kafka, alarms are followed again.
AGAIN_SECONDS = 5.0

_READINGS = frozenset({"alarm", "episode"})
_KINDS = {ALARMS: "alarm", EPISODES: "episode"}
_log = get_logger("tamis.registry")


# By kind and name, what a look compares.
_Seen = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Event:
    """One message: its number, its kind, and its data as JSON."""

    number: int
    kind: str
    data: bytes

    @property
    def text(self) -> bytes:
        """The message as `text/event-stream` has it. JSON has no line breaks."""
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.kind.encode(), self.data)


@dataclass(eq=False)
class Listener:
    """A client, its queue, and the number of messages that did not fit since it took the last one."""

    loop: asyncio.AbstractEventLoop
    readings: bool
    waiting: deque[Event] = field(default_factory=deque)
    missed: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    # Set as soon as nothing that happens is missed.
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def offer(self, event: Event) -> None:
        """Put a message into the queue, in the loop of the client."""
        if event.kind in _READINGS and not self.readings:
            return
        if len(self.waiting) >= LONGEST_QUEUE:
            self.missed += 1
        else:
            self.waiting.append(event)
        self.woken.set()

    def skip(self) -> None:
        """Let the client know that messages may be missing."""
        self.missed += 1
        self.woken.set()

    def end(self) -> None:
        """Let the client's stream end after the messages that wait."""
        self.ended = True
        self.ready.set()
        self.woken.set()


class Broadcast:
    """Sends messages to listeners. Its methods are for the event loop, except `close`."""

    def __init__(self, loop: RegistryLoop, kafka: KafkaSettings, *, most: int = MOST_LISTENERS) -> None:
        self._loop, self._config, self._most = loop, kafka.client_config(), most
        self._lock = threading.Lock()
        self._listeners: set[Listener] = set()
        # Those of an earlier process were smaller, so a client of it is told that messages are missing.
        self._numbers = itertools.count(time.time_ns() // 1000)
        self._past: deque[Event] = deque(maxlen=REMEMBERED)
        self._ending: threading.Event | None = None
        self._ready = False
        self._closed = False

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    @property
    def watching(self) -> bool:
        """True if the thread runs for listeners."""
        return self._ending is not None

    def join(self, last: int | None, *, readings: bool) -> Listener:
        """A new listener. `last`: the number of the last message that the client has got.

        Raises UnavailableError if there are too many, or if the registry stops.
        """
        with self._lock:
            if self._closed:
                raise UnavailableError("the registry is stopping", where="registry", hint="try again")
            if len(self._listeners) >= self._most:
                what = f"{self._most} clients listen to events already"
                raise UnavailableError(what, where="registry", hint="read the lists now and then instead")
            listener = Listener(asyncio.get_running_loop(), readings)
            if last is not None:
                self._catch_up(listener, last)
            self._listeners.add(listener)
            if self._ready:
                listener.ready.set()
            if self._ending is None:
                self._ending = threading.Event()
                threading.Thread(target=self._watch, args=(self._ending,), name="events", daemon=True).start()
        return listener

    def _catch_up(self, listener: Listener, last: int) -> None:
        past = [event for event in self._past if event.number > last]
        known = self._past and self._past[0].number <= last + 1 and last <= self._past[-1].number
        if not known:
            # The messages since then are forgotten, or they were of an earlier process.
            listener.missed = 1
            listener.woken.set()
            return
        for event in past:
            listener.offer(event)

    def leave(self, listener: Listener) -> None:
        """The client has gone. The last one ends the thread, and past messages are forgotten."""
        with self._lock:
            self._listeners.discard(listener)
            if not self._listeners and self._ending is not None:
                self._ending.set()
                self._ending, self._ready = None, False
                self._past.clear()

    def close(self) -> None:
        """End the streams of all listeners, because the server stops. Any thread may call it."""
        with self._lock:
            self._closed = True
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(RuntimeError):  # its loop has ended
                listener.loop.call_soon_threadsafe(listener.end)

    # ---- the thread

    def _watch(self, ending: threading.Event) -> None:
        while not ending.is_set():
            try:
                self._follow(ending)
            except Exception as error:  # all listeners depend on this thread
                _log.exception("watching for listeners of events failed; it begins again", error=str(error))
                self._lose(ending)
                ending.wait(AGAIN_SECONDS)

    def _follow(self, ending: threading.Event) -> None:
        seen: _Seen = {}
        due = 0.0
        reader: TopicReader | None = None
        follow_after = 0.0
        while not ending.is_set():
            now = time.monotonic()
            if now >= due:
                seen = self._look(seen, ending)
                spent = time.monotonic() - now
                due = now + max(LOOK_SECONDS, spent / LOOK_SHARE)
            try:
                if reader is None and now >= follow_after:
                    reader = TopicReader(self._config, (ALARMS, EPISODES))
                    reader.follow()
                    if follow_after:
                        self._lose(ending)
                    self._begin(ending)
                if reader is None:
                    ending.wait(0.2)
                    continue
                for record in reader.poll(0.2, 200):
                    self._pass_on(record, ending)
            except UnavailableError as error:
                _log.warning("alarms can't be followed for listeners of events", error=str(error))
                follow_after = now + AGAIN_SECONDS
                self._begin(ending)
                if reader is not None:
                    reader.close()
                    reader = None
        if reader is not None:
            reader.close()

    def _begin(self, ending: threading.Event) -> None:
        """Let listeners know that the thread watches; without Kafka, it watches the fleet alone."""
        with self._lock:
            if ending.is_set() or self._ready:
                return
            self._ready = True
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(RuntimeError):  # its loop has ended
                listener.loop.call_soon_threadsafe(listener.ready.set)

    def _lose(self, ending: threading.Event) -> None:
        """Let listeners know that alarms may be missing, also those that come back later."""
        with self._lock:
            if ending.is_set():
                return
            self._past.clear()
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(RuntimeError):  # its loop has ended
                listener.loop.call_soon_threadsafe(listener.skip)

    def _look(self, before: _Seen, ending: threading.Event) -> _Seen:
        """Tell what has changed since the last look; nothing while the registry doesn't know the fleet."""
        try:
            with self._loop.reading() as (registry, now):
                found = _seen(registry.view(now))
        except UnavailableError:
            return before
        if before and found["plan"] != before["plan"]:
            self._tell("plan", {"version": found["plan"]["version"]}, ending)
        for kind in ("alerts", "streams", "edges"):
            old, new = before.get(kind, found[kind]), found[kind]
            changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
            if changed:
                self._tell(kind, {"changed": changed[:MOST_NAMES], "count": len(changed)}, ending)
        return found

    def _pass_on(self, record: Record, ending: threading.Event) -> None:
        try:
            # Written anew, since JSON may have line breaks. That fails for values that are nested too deeply.
            data = orjson.dumps(orjson.loads(record.value or b""))
        except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
            _log.warning("a record isn't passed on to listeners", topic=record.topic, error=str(error))
            return
        self._send(_KINDS[record.topic], data, ending)

    def _tell(self, kind: str, data: Any, ending: threading.Event) -> None:
        self._send(kind, orjson.dumps(data), ending)

    def _send(self, kind: str, data: bytes, ending: threading.Event) -> None:
        with self._lock:
            if ending.is_set():
                return
            event = Event(next(self._numbers), kind, data)
            self._past.append(event)
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(RuntimeError):  # its loop has ended
                listener.loop.call_soon_threadsafe(listener.offer, event)


def _seen(view: View) -> _Seen:
    """The states of the fleet, without numbers that change all the time, such as live tuples."""
    streams: dict[str, list[Any]] = {
        stored.name: [_stream(view, stored)] for stored in view.state.of_kind("stream", "derived")
    }
    edges: dict[str, list[Any]] = {}
    # Thousands of shards: no documents are made of them, and alerts have asked for most states already.
    known = {
        shard.name: state
        for stream, shards in view.shards.items()
        for shard, (state, _) in zip(shards, view.shard_states[stream], strict=True)
    }
    for shard in every_shard(view):
        found = known.get(shard.name) or shard_state(view, shard)[0]
        ack = view.seen.acks.get(shard.name)
        # What is doubtful may have times that change with each batch.
        doubtful = ack is not None and bool(ack.doubts)
        edge = view.edge(shard)
        state = shard.name, edge, found, view.seen.used(shard.name), doubtful
        streams.setdefault(shard.stream, []).append(state)
        edges.setdefault(edge, []).append(state)
    for edge in view.seen.edges:
        if edge not in edges:
            edges[edge] = [edge_state(view, edge)[0]]
    for edge, sources in failing_sources(view).items():
        # Their reasons may have numbers that change all the time.
        edges.setdefault(edge, []).append(sorted(sources))
    return {
        "plan": {"version": view.plan.version},
        "alerts": {stored.name: _alert(view, stored) for stored in view.state.of_kind("alert")},
        "streams": streams,
        "edges": edges,
    }


def _alert(view: View, stored: Stored) -> tuple[Any, ...]:
    status = alert_status(view, stored)
    return status.state, status.why, stored.version, sorted(status.retiring)


def _stream(view: View, stored: Stored) -> tuple[Any, ...]:
    facts = stream_facts(view, stored)
    readers = [lease["id"] for lease in facts["subscribers"]]
    # Its reasons may have numbers that change all the time.
    return facts["plan"], facts["topics"], facts["alerts"], readers, len(facts["why"])

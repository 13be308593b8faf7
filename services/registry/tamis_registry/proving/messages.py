"""Messages between the registry and its proving processes, as pickles.

Both ends are the same release of Tamis. The registry starts the process, and only the two have the pipe.

Of the registry's definitions only changes are sent. Each definition is pickled separately, because pickling
thousands at once would stop every thread of the registry.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.declarations.file_access import FileAccess
from tamis.errors import TamisError
from tamis.persistent.dicts import changed_keys
from tamis.query.model import Catalog
from tamis.recordings.times import TimeUnit
from tamis_registry.core.statements.reading import Definitions, Read, kinds


@dataclass(frozen=True)
class Difference:
    """The removed and the new definitions, by kind and name. `paused`: all paused alerts."""

    gone: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str, bytes], ...]
    paused: frozenset[str]

    def apply(self, catalog: Catalog) -> None:
        """Change a replica."""
        tables: dict[str, Definitions] = dict(kinds(catalog))
        for kind, name in self.gone:
            del tables[kind][name]
        for kind, name, pickled in self.new:
            tables[kind][name] = pickle.loads(pickled)
        catalog.paused = set(self.paused)


class Sent:
    """The definitions that were sent to one replica."""

    def __init__(self) -> None:
        self._known = Catalog()

    def difference(self, catalog: Catalog) -> Difference:
        """The message that makes the replica equal to `catalog`; it counts as sent."""
        # A copy: the catalogue of a draft may still change.
        before, now = self._known, catalog.copy()
        gone: list[tuple[str, str]] = []
        new: list[tuple[str, str, bytes]] = []
        for (kind, known), (_, found) in zip(kinds(before), kinds(now), strict=True):
            removed, added = changed_keys(known, found)
            gone += ((kind, name) for name in removed)
            new += ((kind, name, pickle.dumps(found[name])) for name in added)
        self._known = now
        return Difference(tuple(gone), tuple(new), frozenset(catalog.paused))


@dataclass(frozen=True)
class Settings:
    """The first message to a process: limits of its memory, and of the processor time for one text."""

    file_access: FileAccess
    seconds: int
    data_bytes: int


@dataclass(frozen=True)
class Request:
    """A text to read, with the changes that the replica needs first. `files`: it may name files."""

    difference: Difference
    text: str
    file: str | None
    keep: bool
    files: bool = True


@dataclass(frozen=True)
class Sample:
    """Readings of one stream. Each of the `parts` has the readings of one source, in the order of arrival.
    `columns`: those that the readings have; None: all of the stream.
    """

    parts: tuple[tuple[Mapping[str, Any], ...], ...]
    columns: frozenset[str] | None = None


@dataclass(frozen=True)
class TrialLimits:
    """Limits of a trial: seconds of processor time, bytes beyond those that the process has, rows."""

    seconds: int
    data_bytes: int
    rows: int


@dataclass(frozen=True)
class Trial:
    """A text with a query to run on samples. `query` is its name; None: the last query of the text.

    Without `samples`, the answer is `Needed`. `unit` is the unit of times that are numbers, if it isn't that
    of the streams. `files`: the text may name files. `tables`: the query may read tables in service.
    """

    text: str
    file: str | None
    query: str | None
    samples: Mapping[str, Sample] | None
    unit: TimeUnit | None
    limits: TrialLimits
    files: bool = True
    tables: bool = True


@dataclass(frozen=True)
class TrialRequest:
    """A trial, with the changes that the replica needs first."""

    difference: Difference
    trial: Trial


@dataclass(frozen=True)
class NeededStream:
    """The columns of a stream that a query reads, and the one with the event time."""

    columns: frozenset[str]
    time: str | None


@dataclass(frozen=True)
class Needed:
    """The streams that a query reads, by name. `neighbours`: it compares readings with those beside them in
    their stream. `monotone`: further readings never take rows away or change them.
    """

    query: str
    streams: Mapping[str, NeededStream]
    neighbours: bool
    monotone: bool


@dataclass(frozen=True)
class TriedInput:
    """The readings of a stream in a trial. `rows` of them were used, of which edges would send `retained`
    for the query alone. `first` and `last` are event times in microseconds.
    """

    rows: int
    retained: int
    refused: int
    first: int | None
    last: int | None


@dataclass(frozen=True)
class Tried:
    """The result of a trial. `times`: the columns that are times. `rows`: a JSON array of the first rows, of
    `row_count`, as arrays.
    """

    query: str
    columns: tuple[str, ...]
    times: tuple[str, ...]
    rows: bytes
    row_count: int
    truncated: bool
    inputs: Mapping[str, TriedInput]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Progress:
    """The query that is being proved."""

    query: str
    where: str


@dataclass(frozen=True)
class Failed:
    """The text has mistakes, is refused, or made the process fail. In the last case `error` describes it in
    general words.
    """

    error: TamisError


Answer = Progress | Failed | Read | Needed | Tried

# Of one answer as a pickle. The largest texts of fleets with ten thousand alerts take a third of it.
MOST_ANSWER = 128 * 2**20

_PASSED_ON = b"r"  # the first byte of a `Read`, which may be passed on as a pickle


def encoded(answer: Answer) -> bytes:
    """An answer as bytes."""
    return (_PASSED_ON if isinstance(answer, Read) else b"o") + pickle.dumps(answer)


def decoded(message: bytes) -> Answer:
    """An answer from its bytes."""
    answer: Answer = pickle.loads(memoryview(message)[1:])
    return answer


def is_read(message: bytes) -> bool:
    """True if a message is a `Read`."""
    return message.startswith(_PASSED_ON)

"""Cursor of a shard's run in its source: which readings come next, and which of them are read again."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit


@dataclass(slots=True)
class Cursor:
    """Offsets of a run, as of its last reading, and `born`, from which positions are counted (see `Commit`).

    `next`: all readings before it were delivered, even if no tuple was among them. `tuples`: the offset
    behind the last tuple. `decided`: readings before it are read again only for the series of watched
    streams. `reread`: readings before it belong to the commit's plan, although they are read again; 0 if
    there are none. `read_before`: readings before it were read by an earlier run.
    """

    next: int
    tuples: int
    decided: int
    reread: int
    read_before: int
    born: int

    @staticmethod
    def of(commit: Commit, plan: Plan, stream: str, now: int) -> Cursor:
        """The cursor of a run that takes up a commit of a shard of `stream` under a plan."""
        first = commit.done if plan.watched(stream) or commit.cuts is not None else commit.decided
        reread = end_of_reread(plan, stream, commit)
        return Cursor(
            first, first, commit.decided, reread, commit.read, commit.born if commit.version else now
        )

    @property
    def rereading(self) -> bool:
        """True if readings after the commit must be read again before the shard uses another plan."""
        return self.next < self.reread

    @property
    def read(self) -> int:
        """The offset up to which this run or an earlier one has read."""
        return max(self.next, self.reread, self.read_before)

    @property
    def position(self) -> int:
        """The position of the next reading."""
        return self.born + self.next

    def take(self, first: int, last: int, now: int) -> bool:
        """Move behind tuples. Returns True if their source was made anew: its tuples are no duplicates of
        those before.
        """
        anew = first < self.tuples
        if anew:
            self.born = max(now, self.born + self.tuples)
            self.reread = self.decided = self.read_before = 0
        self.next = self.tuples = last + 1
        return anew

    def skip(self, offset: int) -> None:
        """Move to an offset if it is ahead."""
        self.next = max(self.next, offset)


def retires_definition(plan: Plan, stream: str, version: int) -> bool:
    """True if the plan retires a definition of a shard's stream that was in use under the plan `version`."""
    streams = {stream, *(one.name for one in plan.watched(stream))}
    old = {name for name, successor in plan.retiring.items() if successor > version}
    return bool(old) and any(
        f"{definition.alert}@{definition.version}" in old
        for definition in plan.definitions
        if any(source.stream in streams for source in definition.inputs)
    )


def end_of_reread(plan: Plan, stream: str, commit: Commit) -> int:
    """The offset up to which readings belong to the commit's plan although they are read again
    (`replay_version`); 0 if there are none. A definition that `plan` retires may have to count them.
    """
    planned = plan.stream(stream)
    if planned is not None and planned.anew > commit.version:
        return 0  # no definition counts readings from before the restart of its time
    retires = retires_definition(plan, stream, commit.version)
    return commit.read if commit.done < commit.read and retires else 0

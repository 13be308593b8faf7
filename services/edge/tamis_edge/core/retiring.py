"""Plans that retire definitions, and the readings that must be read again under the plan before."""

from __future__ import annotations

from tamis.plan.model import Plan
from tamis_edge.core.commit import Commit


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
    found = plan.stream(stream)
    if found is not None and found.anew > commit.version:
        return 0  # no definition counts readings from before the restart of its time
    retires = retires_definition(plan, stream, commit.version)
    return commit.read if commit.done < commit.read and retires else 0

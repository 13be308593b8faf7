"""All checks of `tamis doctor` in their order, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tamis.doctor import broker, machine, registry, sources
from tamis.doctor.places import Finding, Places
from tamis.errors import TamisError

CHECKS: dict[str, Callable[[Places], Finding]] = {
    "java": machine.java,
    "ports": machine.ports,
    "memory": machine.memory,
    "disk": machine.disk,
    "kafka": broker.reachable,
    "brokers": broker.brokers,
    "topics": broker.topics,
    "clock": machine.clock,
    "registry": registry.reachable,
    "cluster": registry.cluster,
    "plan": registry.plan,
    "sources": sources.kept,
    "readings": registry.readings,
    "joiner": registry.joiner,
    "sinks": registry.sinks,
}
# The checks that ask the registry.
_OF_REGISTRY = ("cluster", "plan", "sources", "readings", "joiner", "sinks")


def findings(places: Places) -> Iterator[tuple[str, Finding]]:
    """The name and the finding of each check. A check whose need isn't available is `unchecked`, with the
    reason.
    """
    silent = ""
    for name, check in CHECKS.items():
        if silent and name in _OF_REGISTRY:
            yield name, Finding("unchecked", silent)
            continue
        try:
            found = check(places)
        except TamisError as error:
            found = Finding("unchecked", f"{error.where}: {error.what}" if error.where else error.what)
        if name == "registry" and found.state != "ok":
            silent = found.found  # the others would wait for it as long, one after the other
        yield name, found

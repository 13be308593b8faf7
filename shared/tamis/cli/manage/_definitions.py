"""Facts of alerts that their alarms don't have, by the definitions in the plans of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.errors import InputError, UnavailableError
from tamis.messaging.topics import PLANS


@dataclass(frozen=True)
class DefinitionFacts:
    """The columns of an alert's rows and the positions in the keys of its alarms that are times, its severity
    and its labels.
    """

    row_times: frozenset[str] = frozenset()
    key_times: tuple[int, ...] = ()
    severity: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


UNKNOWN = DefinitionFacts()


class Definitions:
    """The definitions of alerts. Plans are read when a record has a definition that isn't known yet, each
    plan only once.
    """

    def __init__(self, config: Mapping[str, Any], say: Callable[[str], None]) -> None:
        """`say` gets the reason if the plans can't be read, once."""
        self._config, self._say = config, say
        self._known: dict[tuple[str, int | None], DefinitionFacts] = {}
        self._plans: dict[int, bytes] = {}  # those that were not decoded yet
        self._newest = 0
        self._failed = False  # reported once

    def of(self, alert: str, definition: int | None) -> DefinitionFacts:
        """The facts of an alert by the plan version that made its definition; None: the newest definition.
        Without any plan that has it, nothing is known.
        """
        key = alert, definition
        if key in self._known:
            return self._known[key]
        if definition is None or definition > self._newest:
            self._read()
        while key not in self._known and self._plans:
            self._decode(self._plans.pop(max(self._plans)))
        return self._known.setdefault(key, UNKNOWN)

    def _read(self) -> None:
        from tamis.messaging.topic_reader import TopicReader
        from tamis.plan.json_form import version_of

        found: dict[int, bytes] = {}
        try:
            with TopicReader(self._config, [PLANS]) as reader:
                for record in reader.snapshot():
                    try:
                        if record.value is not None and (version := version_of(record.value)) > self._newest:
                            found[version] = record.value
                    except InputError:
                        continue  # the services report records that can't be read
        except UnavailableError as error:
            if not self._failed:
                self._say(f"can't tell which columns are times: {error}")
            self._failed = True
            return
        self._plans |= found
        self._newest = max(self._plans, default=self._newest)

    def _decode(self, data: bytes) -> None:
        from tamis.plan.json_form import decode_plan
        from tamis.plan.time_columns import key_times, time_columns

        try:
            plan = decode_plan(data)
        except InputError:
            return
        for query in plan.queries:
            key = query.alert, query.version
            if key not in self._known:
                times = frozenset(time_columns(query))
                facts = DefinitionFacts(times, key_times(query, plan), query.severity, dict(query.labels))
                self._known[key] = facts
            self._known.setdefault((query.alert, None), self._known[key])

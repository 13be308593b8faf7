"""`tamis.verify`: the alarms of alerts over frames, compared with those of a plain join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.errors import InputError
from tamis.frames.explain import verdicts_html
from tamis.frames.inputs import Frames, Sql, name_of, recordings_of, statements_of
from tamis.offline.verify import text as verdict_text
from tamis.offline.verify import verify as compared
from tamis.recordings.times import TimeUnit
from tamis.verification.compare import Verdict

_TYPES = {
    "query": pa.string(),
    **dict.fromkeys(
        ("tuples", "retained", "reference_alarms", "alarms", "missed", "extra", "late", "at_threshold"),
        pa.int64(),
    ),
    # NULL unless edges send partial aggregates.
    **dict.fromkeys(
        ("partial_rows", "partial_records"),
        pa.int64(),
    ),
}


@dataclass(frozen=True, repr=False)
class Verification:
    """The verdicts on alerts, in the order of the SQL. As text it is what `tamis verify` prints."""

    verdicts: tuple[Verdict, ...]

    @property
    def same(self) -> bool:
        """True if no alarm is missed and none is extra."""
        return all(one.same for one in self.verdicts)

    @property
    def table(self) -> pa.Table:
        """A row for each alert, with the numbers of `tamis verify --json`."""
        columns = {
            name: pa.array([getattr(one, name) for one in self.verdicts], kind)
            for name, kind in _TYPES.items()
        }
        return pa.table(columns)

    def document(self) -> list[dict[str, Any]]:
        """The JSON document of `tamis verify --json`."""
        return [one.to_json() for one in self.verdicts]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table, for libraries that read Arrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __str__(self) -> str:
        return verdict_text(self.verdicts)

    def __repr__(self) -> str:
        """The text, as a Python shell shows it."""
        return str(self)

    def _repr_html_(self) -> str:
        """The verdicts as notebooks show them."""
        return verdicts_html(self.verdicts, str(self))


def verify(
    sql: Sql, frames: Frames, *, time_unit: TimeUnit | None = None, as_arrived: bool = False
) -> Verification:
    """Compare the alarms of each alert over frames with those of a plain join over all readings by DuckDB.

    Arguments: as of `tamis.run`; each stream that an alert reads needs a frame. Tamis retains tuples for all
    alerts of the SQL together, as in a fleet.

    Raises SqlErrors for mistakes in the SQL, InputError for wrong frames, and NotAcceptedError if an alert
    is refused.
    """
    catalog, _ = statements_of(sql)
    alerts = list(catalog.alerts.values())
    if not alerts:
        raise InputError("no alert to verify", where=name_of(sql), hint="add a CREATE ALERT statement")
    recordings = recordings_of(catalog, alerts, frames, time_unit, as_arrived=as_arrived)
    return Verification(tuple(compared(catalog, recordings)))

"""`tamis.explain`: the proofs about queries, and what edges drop of frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tamis.frames.html import explained_html
from tamis.frames.inputs import Frames, Sql, check_query, name_of, recordings_of, statements_of
from tamis.offline.explain import Explained, asked_queries, explained
from tamis.planning.explanations.explanation import Explanation
from tamis.recordings.time_units import TimeUnit


@dataclass(frozen=True, repr=False)
class Explanations:
    """The explanations of queries, in the order of the SQL. As text it is what `tamis explain` prints."""

    found: Explained

    @property
    def accepted(self) -> bool:
        """True if every query, and every change of a stream or function, is accepted."""
        return self.found.accepted

    def document(self) -> dict[str, Any]:
        """The JSON document of `tamis explain --json`."""
        return self.found.document()

    def text(self, *, verbose: bool = False) -> str:
        """The explanations for people. `verbose` adds the proofs, the compared values and the formulas."""
        return self.found.text(verbose=verbose)

    def __len__(self) -> int:
        return len(self.found.queries)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.found.queries)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """The text, as a Python shell shows it."""
        return str(self)

    def _repr_html_(self) -> str:
        """The explanations as notebooks show them."""
        return explained_html(self.found)


def explain(
    sql: Sql,
    frames: Frames | None = None,
    *,
    query: str | None = None,
    witness: bool = False,
    time_unit: TimeUnit | None = None,
    as_arrived: bool = False,
) -> Explanations:
    """Which readings of each query can be omitted and how much memory it needs, or why it is refused.

    Arguments: as of `tamis.run`. With frames, edges filter each one for each query alone, and the share that
    they drop is in the result; not every stream needs one. `query`: only the query of this name. `witness`:
    run the example of an unbounded query, and show how its memory grows.

    Raises SqlErrors for mistakes in the SQL, and InputError for an unknown query or wrong frames.
    """
    check_query(query)
    catalog, statements = statements_of(sql)
    chosen = asked_queries(catalog, statements, query, name_of(sql))
    recordings = (
        recordings_of(catalog, chosen, frames, time_unit, complete=False, as_arrived=as_arrived)
        if frames is not None
        else {}
    )
    return Explanations(explained(chosen, catalog, statements, recordings, witness=witness))

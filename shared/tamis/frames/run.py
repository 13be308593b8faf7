"""`tamis.run`: the rows of a query over frames."""

from __future__ import annotations

import pyarrow as pa

from tamis.frames.arrow_tables import warn
from tamis.frames.inputs import Frames, Sql, check_query, name_of, recordings_of, statements_of
from tamis.offline.run import chosen_query, rows_of
from tamis.offline.wording import FUNCTION
from tamis.recordings.times import TimeUnit


def run(
    sql: Sql,
    frames: Frames,
    *,
    query: str | None = None,
    time_unit: TimeUnit | None = None,
    as_arrived: bool = False,
) -> pa.Table:
    """The rows of an alert or a derived stream over frames, with the filters and the omission of an edge.

    Arguments: `sql` is the text of statements, or a `Path`; `frames` has a frame, or a list of frames of
    separate sources, for each stream that the query reads; `query` is the name of the query, if there are
    several; `time_unit` is the unit of times that are numbers. Rows of a frame are read in the order of their
    event times; with `as_arrived` their order is that of their arrival, so that some may be late.

    The result is an Arrow table with the columns of SELECT, in the order of the event time of the latest
    tuple of each row. Times have the types that they have in the frames. `to_pandas()` and
    `polars.from_arrow` convert it.

    Raises SqlErrors for mistakes in the SQL, InputError for wrong frames, and NotAcceptedError if the query
    is refused. Rows that an edge would refuse are left out, with a TamisWarning.
    """
    check_query(query)
    catalog, _ = statements_of(sql)
    chosen = chosen_query(catalog, query, name_of(sql), FUNCTION)
    recordings = recordings_of(catalog, [chosen], frames, time_unit, as_arrived=as_arrived)
    return rows_of(chosen, catalog, recordings, wording=FUNCTION, notify=warn)

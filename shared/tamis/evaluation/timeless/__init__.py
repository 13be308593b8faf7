"""Queries over streams without time, evaluated over recordings tuple by tuple, with bounded synopses.

| file | idea |
|---|---|
| `order` | in which order tuples arrive |
| `run` | one alternative of a query over recordings |
| `rows` | the rows of a query without aggregates |
| `unions` | the rows of a UNION from those of its SELECTs |
| `tallies` | counts, sums and extremes of a bucket or group |
| `groups` | the changing rows of groups |
"""

from tamis.evaluation.timeless.groups import replay_groups
from tamis.evaluation.timeless.rows import Result, replay_rows
from tamis.evaluation.timeless.unions import merged

__all__ = ["Result", "merged", "replay_groups", "replay_rows"]

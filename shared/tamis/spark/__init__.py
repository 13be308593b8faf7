"""Omission and temporal joins in Spark jobs, on static and streaming DataFrames of PySpark.

| module | what it has |
|---|---|
| `retaining`, `joining` | the functions `retain` and `temporal_join`, and the plans that Spark runs |
| `pair_join` | what one group of keys of a join does with new rows and a watermark; no Spark |
| `columns` | times, numbers and keys of Arrow tables as arrays |
| `steps` | the interface of what a group does, and its counts |
| `group_processor` | Spark's stateful operator around it, over rows in blocks: state, timers and metrics |
| `frames` | checks of the columns of DataFrames |
| `requirements` | the versions of PySpark that do |
"""

from tamis.spark.requirements import check_requirements

check_requirements()

# PySpark must be there before these are imported.
from tamis.spark.joining import temporal_join  # noqa: E402
from tamis.spark.retaining import retain  # noqa: E402

__all__ = ["retain", "temporal_join"]

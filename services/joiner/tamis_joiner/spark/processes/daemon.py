"""Process from which Spark forks its Python workers. It has already imported their modules.

The imports would take each worker two seconds. The objects are frozen here, so that the workers share them,
and no worker scans them for garbage.
"""

from __future__ import annotations

from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

from tamis_joiner.spark import batch, processor, source  # noqa: F401
from tamis_joiner.spark.processes.frozen_objects import FROZEN

if __name__ == "__main__":
    FROZEN.add_imported()
    manager()

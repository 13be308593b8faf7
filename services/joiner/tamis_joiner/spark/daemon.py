"""Process from which Spark forks its Python workers. It has already imported their modules.

The imports would take each worker two seconds. Spark also makes each worker collect garbage after each task,
which takes 70 ms for the objects of the libraries. These objects are frozen here, so that they aren't scanned
again.
"""

from __future__ import annotations

import gc

from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

from tamis_joiner.spark import batch, processor, source  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()

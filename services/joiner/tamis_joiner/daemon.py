"""The process that Spark forks its Python workers from, with all that they need imported.

A worker of its own spends two seconds on that. And Spark has a worker collect garbage after each task: 70 ms
to look at the objects of the libraries, which are frozen here and not looked at again.
"""

from __future__ import annotations

import gc

from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

from tamis_joiner import batch, packing, processor  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()

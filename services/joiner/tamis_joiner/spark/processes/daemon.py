"""Process from which Spark forks its Python workers. It has already imported their modules.

The imports would take each worker two seconds. The objects are frozen here, so that the workers share them,
and no worker scans them for garbage.
"""

from __future__ import annotations

import sys

from pyspark import daemon, worker

from tamis_joiner.spark import batch, processor, source  # noqa: F401
from tamis_joiner.spark.processes.connection_exchange import EXCHANGE
from tamis_joiner.spark.processor import FROZEN

if __name__ == "__main__":
    # Spark also has daemons of other workers, which plan queries.
    if sys.argv[1:] == [worker.__name__]:
        daemon.worker = EXCHANGE.begin(daemon.worker)  # type: ignore[assignment]
    FROZEN.add_imported()
    daemon.manager()

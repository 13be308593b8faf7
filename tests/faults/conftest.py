"""Faults of processes, disks, clocks, inputs and networks: `make faults`.

Each fault is one file. Its test breaks something in a running fleet or service, and compares the alarms that
came with those that DuckDB finds in all accepted readings (`reference`): none is missed, and none is doubled
after identity. `docs/benchmarks/faults.md` lists the faults.

| module | content |
|---|---|
| `load` | readings of two streams, posted until they are accepted |
| `reference` | alarms and episodes by DuckDB, and the comparison |
| `loaded_fleet` | a whole fleet under load, to be broken and then compared |
| `size` | the number of readings: `TAMIS_FAULTS_READINGS`, by default 100,000 |
| `windows` | window alerts whose rows say which readings they count, and the comparison |
| `judging`, `kafka_feeder` | the feeder of tests/e2e over Kafka, and its alarms beside those of DuckDB |
| `faulty_receiver` | a web server for notifications that fails in several ways |
| `fuzz`, `fuzz_targets` | Atheris on the readers of bytes that come from outside |
| `schemathesis_hooks` | what Schemathesis sends to the registry |
| `network`, `network_switch` | services in network namespaces, and what happens to packets between them |

Tests with the marker `faults` are run by `make faults` only; the short tests beside them by `make test`, too.
"""

from tests.integration.conftest import bench, empty

__all__ = ["bench", "empty"]

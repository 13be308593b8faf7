"""Subcommands that run one service each, as containers do.

| module | contents |
|---|---|
| `edge` | reads sources and publishes what queries need |
| `registry` | takes SQL and writes plans |
| `joiner` | evaluates alerts in Spark |
| `alerts` | groups alarms into episodes and notifies sinks |
| `kafka` | the embedded Kafka, for a fleet on one machine |
"""

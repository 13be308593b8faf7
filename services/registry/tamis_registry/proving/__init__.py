"""Processes that parse and prove SQL statements outside the registry's process, within limits.

The `pool` has a few provers for all requests. A `prover` is the registry's handle of one process. The process
runs `child`, which reads one text after the other. `messages` sends changed definitions to the process.
`trial` runs a query of a text on samples of readings.
"""

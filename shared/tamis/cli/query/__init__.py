"""Subcommands for queries over recordings: nothing here needs a fleet.

| module | contents |
|---|---|
| `explain` | what may be omitted, how much memory is needed, or why a query is refused |
| `verify` | the same alarms with and without Tamis |
| `run` | the rows of a query over recordings |
| `omit` | the readings of a recording that an edge would keep |
| `plot` | a picture of these readings |
| `match` | whether one predicate implies another |
| `size` | the machines that a fleet needs |
"""

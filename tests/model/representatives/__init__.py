"""Representatives at edges under random schedules, with the real cores of edge, registry and joiner.

Edges crash and move, queries begin, change and end, the joiner repeats batches and loses its state, and
topics lose records. The rows are compared with the join of all readings in plain Python.

| module | about |
|---|---|
| `queries` | random queries, and their variants that share entries |
| `shard` | a source and the runs that read it: owners, and former owners that don't know it |
| `joiner` | output partitions, whose batches fail and are repeated, and whose state is lost |
| `office` | the registry, and what it was asked for |
| `judge` | which rows must have been given, and which may |
| `schedule` | the steps, and a schedule of them |
| `mutations` | the product with a rule broken |
"""

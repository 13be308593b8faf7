"""Memory of queries: the verdict bounded, unbounded or unknown, the bound, the proof and the repairs.

A query is *bounded* if its state has a size that is known before it runs, however many tuples arrive. Tamis
only accepts bounded queries. For an unbounded query the proof is a *witness*: inputs for which every
evaluator needs more and more memory. A *repair* is a change of the query that makes it bounded.

- `timeless`: SQL over streams without event time. The theory for conditions that are combined with AND, and
  the count of entries, are those of the operator (`tamis.operators.synopses`: arasu-2004, extended by
  offsets such as `a < b + 3`).
- `application_time`: extends this theory to conditions on event time (schiff-2020).
- `windows`: the bound of aggregates over windows.
- `memory`: the verdict, which has the same form for all kinds of queries.

`docs/bounded.md` says where the statements of the papers are corrected. Nothing here does I/O, except reading
the files of static relations.

Words of these packages: an *occurrence* is one source in FROM (a self-join has two occurrences of one
stream). A *node* is one attribute of one occurrence. A *closure* has everything that the conditions imply
about differences between nodes.
"""

"""Memory of queries in application time, where tuples come in order of event time (schiff-2020).

While a query waits for later tuples, it must keep partial combinations of the tuples that have arrived. The
query is bounded if each kind of partial combination, called a *part*, has a bounded number of entries.

- `translate`: SQL as conjunctions of differences, with the rows of `static_relations`.
- `decide`: the verdict on the parts, which are those of the operator (`tamis.operators.application_time`).
- `witness`: inputs that prove a query unbounded.

`docs/bounded.md` says where the statements of the paper are corrected.
"""

"""Memory of queries in application time, where tuples come in order of event time (schiff-2020).

While a query waits for later tuples, it must keep partial combinations of the tuples that have arrived. The
query is bounded if each kind of partial combination, called a *part*, has a bounded number of entries.

- `arrivals`: the event times, static relations and declared rates of a query.
- `partial_combinations`: the parts of a query.
- `decide`: the verdict on the parts.
- `bound`: the number of entries of the parts.
- `witness`: inputs that prove a query unbounded.
- `store` and `evaluator`: keep the partial combinations and join new tuples with them.

`docs/bounded.md` says where the statements of the paper are corrected.
"""

"""Physical plans for people, as EXPLAIN of a database shows them: a tree of operators for each query.

Begin with `query_plans`, which takes the tree from a plan; `operators` is the tree as data, and `text` prints
it. `edges` has the operators of edges, with `partial_aggregates` for the lower half of windows; `joins`,
`windows` and `timeless` have those of the joiner.
"""

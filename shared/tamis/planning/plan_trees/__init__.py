"""Physical plans for people, as EXPLAIN of a database shows them: a tree of operators for each query.

Begin with `query_plans`, which takes the tree from a plan; `operators` is the tree as data, and `text` prints
it. `edges` has the operators of edges, and `joins`, `windows` and `timeless` those of the joiner.
"""

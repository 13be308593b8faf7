"""Memory of queries over streams without time, from their SQL to the verdict and its messages.

`translate` splits a query into conjunctions: `alternatives` takes OR apart, `differences` reads a condition
as difference bounds, `declared_domains` adds types and CHECKs, and splits DOUBLE columns into intervals.
`minimised_alternatives` removes superfluous self-joins. `aggregates` reduces queries with GROUP BY to plain
ones. `verdict` decides, also on a UNION; `proof`, `repairs` and `messages` say why, and what would help.
`tamis.operators.timeless` evaluates these queries.
"""

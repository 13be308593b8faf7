"""SELECT DISTINCT, MIN and MAX over several streams without time, decided by certificates.

Begin with `proof`: the sources of a query, each with the tuples that stand for all others, and the bound.
`aggregates` has the DISTINCT query that needs the same tuples as one with aggregates. `staircase` proves that
others are unbounded.
`covers` finds these tuples for one source, from its part of the `conditions`. `limits` says which columns
have few values, and `computed_order` whether rounding keeps the order of values. docs/bounded.md has the
theorems ("Representatives").
"""

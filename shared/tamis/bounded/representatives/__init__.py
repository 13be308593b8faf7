"""SELECT DISTINCT over several streams without time, decided by certificates.

Begin with `proof`: the sources of a query, each with the tuples that stand for all others, and the bound.
`covers` finds these tuples for one source, from its part of the `conditions`. `limits` says which columns
have few values, and `computed_order` whether rounding keeps the order of values. docs/bounded.md has the
theorems ("Representatives").
"""

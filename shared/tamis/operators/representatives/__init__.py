"""Joins of streams without event time, of which only representatives are kept.

Begin with `join`, which joins each tuple that is kept with those that are kept of the other sources. `query`
has the rows of DISTINCT; groups read the join in `timeless.represented`. `synopsis` has the tuples that stand
for the others of a source, `inequations` those for conditions with `!=`, and `best` those for counts.
"""

"""SELECT DISTINCT over streams without event time, of which only representatives are kept.

Begin with `query`, which joins each tuple that is kept with those that are kept of the other sources.
`synopsis` has the tuples that stand for the others of a source, and `inequations` those for conditions with
`!=`.
"""

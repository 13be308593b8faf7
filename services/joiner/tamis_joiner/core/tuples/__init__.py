"""The tuples of joins that one output partition holds, and how long it holds them.

Begin with `stored_tuples`: the tuples of one topic as columns, and how others are merged with them.
`filter_bitmaps` has the results of all filters for them, and `retention` the rule that decides whether a
tuple is still needed (`protocol.md`, rule 10). `tuple_store` keeps the tuples of all topics in memory and in
the slices of the state.
"""

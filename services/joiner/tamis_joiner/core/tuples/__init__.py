"""The tuples of joins that one output partition holds, and how long it holds them.

`stored_tuples` are the tuples of one topic as columns; `merge` adds tuples and removes duplicates.
`filter_bitmaps` has the results of all filters for them, and `retention` the rule that decides whether a
tuple is still needed (`protocol.md`, rule 10). `tuple_store` keeps the tuples of all topics in memory and in
the slices of the state.
"""

"""Joins by key and time: the kernels of the joiner, of edges and of runs over recordings.

Begin with `temporal_join`, the join of n streams in columns, and `existence`, which adds EXISTS and NOT
EXISTS (`decided_rows` says when frontiers have decided a row). `filter_dispatch` evaluates many filters at
once, `tuple_entries` has the decisions of edges, and `replay` runs an alert over recordings. `rows_by_time`
is the join whose rows another operator reads in order of time.
"""

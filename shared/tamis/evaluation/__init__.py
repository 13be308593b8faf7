"""Evaluation of queries in columns, shared by the joiner, edges, and runs over recordings.

Begin with `temporal_join`, the join of n streams by key and time, and `existence`, which adds EXISTS and NOT
EXISTS (`decided_rows` says when frontiers have decided a row). `filter_dispatch` evaluates many filters at
once, `tuple_entries` has the decisions of edges, and `replay` runs an alert over recordings. `standing` has
the queries that keep synopses.
"""

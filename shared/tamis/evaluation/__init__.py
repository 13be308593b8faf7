"""Evaluation of queries over columns in memory, shared by edge, joiner, `tamis run` and `tamis verify`.

`filter_dispatch` evaluates the filters of a stream, and `entries` the entries of its topics, for edges.
`temporal_join` joins tuples by key and time, and `standing` has the queries that keep synopses. `replay` puts
these together to run an alert over recordings.
"""

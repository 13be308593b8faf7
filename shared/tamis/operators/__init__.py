"""Operators of physical plans: their state, what tuples and watermarks make of it, and its bound.

The joiner and `tamis run` make them from the nodes of a plan (`tamis.plan.nodes`). Begin with `contract`, the
interface of all that keep synopses, and `build`, which makes one from its node. The folders and files are the
operators by name; `time_join` is the join by key and time, whose tuples the joiner keeps itself. State is
dumped as JSON (`state`), `row_store` has the rows that are kept, and `recording_runs` runs a plan over
recordings.
"""

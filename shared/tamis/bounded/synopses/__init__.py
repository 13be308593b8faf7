"""Synopses of bounded queries without time: what is kept of a stream, and how new tuples join it.

`synopsis`, `join` and `evaluator` work tuple by tuple. `columns` and `filters` work on whole batches: with
DISTINCT they find the tuples that must be looked at one by one, and `counting` evaluates queries without
DISTINCT in compiled loops.
"""

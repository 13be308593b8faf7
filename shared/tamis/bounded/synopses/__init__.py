"""Synopses of bounded queries without time: what is kept of a stream, and how new tuples join it.

`synopsis`, `join` and `evaluator` work tuple by tuple. `columns` works on whole batches: with DISTINCT it
finds the tuples that must be looked at one by one, and `counting` evaluates queries without DISTINCT in
compiled loops.
"""

"""Synopses of conjunctions without time: what is kept of a stream, how new tuples join it, and its bound.

Begin with `decide`, which says in polynomial time whether the synopses of a `tamis.plan.conjunction` are
bounded, and `bound`, which counts their entries by the `bucket_coordinates` of tuples (arasu-2004, with
offsets). `synopsis`, `join` and `evaluator` work tuple by tuple. `columns` works on whole batches: with
DISTINCT it finds the tuples that must be looked at one by one, and `counting` evaluates queries without
DISTINCT in compiled loops.
"""

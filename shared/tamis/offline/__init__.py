"""Queries over recordings in one process, without a fleet, for the command line and for Python.

`recordings` chooses and reads the recordings of a query, `run`, `verify`, `explain` and `omit` work on them.
Nothing here prints: what a caller should know besides the result is given to its function `notify`.
"""

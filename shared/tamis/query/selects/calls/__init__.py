"""Calls whose result depends on more than one row: of aggregates, window functions and patterns.

Begin with `aggregates`. The calls of window functions and patterns become watches of a stream
(`watched_calls`).
"""

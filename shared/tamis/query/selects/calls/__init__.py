"""Calls whose result depends on more than one row: of aggregates, window functions and patterns."""

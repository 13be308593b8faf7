"""Joins that are no combination of all rows: ASOF JOIN, EXISTS, NOT EXISTS, and what means the same."""

"""Queries over streams without event time as standing queries, with bounded synopses.

Begin with `rows`, which evaluates queries without aggregates and UNION, and `groups`, which evaluates GROUP
BY. Each splits the query into alternatives, which find the tuples that belong to them and return `matches`:
with duplicates (`counting`), or over one stream and with DISTINCT (`alternatives`).
"""

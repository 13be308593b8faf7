"""Rows and groups over streams without event time, with bounded synopses.

Begin with `rows`, which evaluates queries without aggregates and UNION, and `groups`, which evaluates GROUP
BY. The alternatives of the query find the tuples that belong to them and return `matches`: with duplicates
(`counting`), or over one stream and with DISTINCT (`alternatives`).
"""

"""Queries over streams without event time as standing queries, with bounded synopses.

`rows` evaluates queries without aggregates, `unions` UNION, and `groups` GROUP BY. Each splits the query into
alternatives (`alternatives`), which find the tuples that belong to them (`alternative_tuples`) and return
`matches`: over one stream (`single_stream`), with duplicates (`counting`) or with DISTINCT (`distinct`).
"""

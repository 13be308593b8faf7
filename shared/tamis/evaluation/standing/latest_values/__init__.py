"""Queries with ASOF JOIN as standing queries: each tuple of the first stream with the latest ones of others.

`query` decides the rows when the watermarks have passed them. `candidates` has the tuples of a joined source
that may still be the latest of their key, `waiting` the tuples that wait for the watermarks, and `kernels`
the compiled search.
"""

"""Declarations that SQL, provers, plans, operators and edges share: columns, windows, streams, watches.

Begin with `definitions` (columns, windows, tables, functions) and `streams`. Nothing here parses or proves.
"""

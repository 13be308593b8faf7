"""Scalar expressions: from syntax trees to typed expressions.

`resolution` walks a syntax tree. It resolves column names in a scope (`scopes`), checks and converts types
(`operators`), makes calls of built-in functions (`functions`), inlines those of users (`calls`) and rewrites
BETWEEN, IN and the other shorthands of SQL. Calls of aggregates are resolved by an object that the SELECT
passes in, so that this package needs nothing of SELECT.
"""

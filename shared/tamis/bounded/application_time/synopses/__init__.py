"""Synopses of queries in application time: the stored parts, and how new tuples extend and complete them.

`store` keeps the entries of a part, `join_orders` says in which order a new tuple is joined with parts and
static relations, and `evaluator` does it as time advances.
"""

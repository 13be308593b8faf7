"""Algebra of constraint relations: projections as variables grow, and operations as tuples grow."""

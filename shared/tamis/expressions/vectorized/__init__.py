"""Vectorised evaluation: an expression becomes a program, and each step is computed once for a whole batch.

`evaluate` runs a `program` over columns. Steps take and return `operands`, which carry the NULLs. DOUBLE
functions are those of the C library (`libm`), so that DuckDB computes the same bits.
"""

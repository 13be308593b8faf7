"""Exact evaluation: bounds of rounding errors, and exact arithmetic where rounding could decide a condition.

`rounding` bounds the error of a computed condition as an expression of its own, which runs over the same
batch. Rows within the bound are decided by `conditions`, in rational numbers or enclosures. `polynomials`
serves sums and products whose exact values edges compare. `sums` adds runs of numbers exactly.
"""

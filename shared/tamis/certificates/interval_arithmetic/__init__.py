"""Interval arithmetic: what a function's value and derivatives can be over a box of its columns.

`intervals` has the arithmetic with outward rounding, `operator_derivatives` the rules of differentiation for
each operator, `interval_derivatives` applies them to a whole expression, and `subdivision` splits boxes until
a statement is proved or the effort is spent.
"""

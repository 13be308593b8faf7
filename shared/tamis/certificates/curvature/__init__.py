"""Monotonicity, convexity and quasiconvexity of functions, and the sets where conditions hold.

`properties` and `level_sets` are the algebra, `composition` applies it to the operators of SQL, `piecewise`
takes CASE apart, and `prover` derives the properties of a whole condition. Sources: disciplined convex
programming; Boyd and Vandenberghe, Convex Optimization, 3.4.
"""

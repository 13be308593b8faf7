"""Aggregates in columns: exact sums, counts, extremes, distinct values and medians, updated with each tuple.

Begin with `accumulators`, which hold counts, sums and extremes of one column for many groups or buckets;
`values` holds all values of groups, and `kernels` has the compiled loops. Sums of DOUBLEs are exact
(`tamis.expressions.exact.sums`).
"""

"""Aggregates in columns: exact sums, counts, extremes, distinct values and medians, updated with each tuple.

`kernels` has the compiled loops. `running` and `values` hold the state of many groups or buckets.
`accumulators` combines counts, sums and extremes of one column. Sums of DOUBLEs are exact
(`tamis.expressions.exact.sums`).
"""

"""Joins in application time: the combinations of tuples that are kept, and their bound (schiff-2020).

Begin with `query`, the operator, and `evaluator`, which runs one conjunction tuple by tuple. `arrivals` has
the times of its streams, `partial_combinations` the parts of a row that are kept, `store` their entries, and
`bound` counts these.
"""

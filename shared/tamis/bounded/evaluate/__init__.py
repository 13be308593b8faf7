"""Evaluating bounded queries with synopses: `synopsis`, `join`, `evaluator` tuple by tuple; `columns` and
`filters` for whole batches, and `counted` for batches without DISTINCT.
"""

"""Evaluating bounded queries with synopses: `synopsis`, `join`, `evaluator`; `columns` for whole batches."""

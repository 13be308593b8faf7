"""Evaluating bounded queries in application time: `store` keeps parts, `plans` says how they grow,
`evaluator`.
"""

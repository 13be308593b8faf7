"""Evaluating bounded queries tuple by tuple with synopses: `coordinates`, `synopsis`, `join`, `evaluator`."""

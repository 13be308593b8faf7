"""Benchmarks of the product beside a plain way of doing the same: `python -m benchmarks`."""

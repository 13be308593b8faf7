"""Queries over streams without time: the decision whether they are bounded, and their evaluation."""

"""Queries over streams without time: deciding whether they are bounded, and evaluating those that are."""

"""Matching, relaxing and evaluating predicates as kuntschke-2006 measures them in its section 6."""

"""Matching, relaxing and evaluating predicates, as in section 6 of kuntschke-2006."""

"""Queries of a plan: the form in which the joiner runs them."""

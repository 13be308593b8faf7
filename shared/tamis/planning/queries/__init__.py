"""Queries of a plan: the form in which the joiner runs them.

Begin with `definitions`, which makes the plan's definition of an alert; `standing_queries` serves all kinds
but joins by time.
"""

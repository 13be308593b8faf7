"""Bracket omission for hopping and tumbling windows: each window keeps its extremes.

A window consists of panes of one slide each. `panes` finds the extremes of panes; then the rule of
`tamis.omission` decides them, with panes for times.
"""

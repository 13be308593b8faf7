"""Partial aggregates of windows in place of readings: the link, the work of the joiner, the delay of rows.

Begin with `ways`, the alerts that are measured.
"""

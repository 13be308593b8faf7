"""Shards of the fleet: their reports, those that a plan lists, and streams whose time is restarted.

Begin with `membership`, which decides what a plan lists; `fleet_reports` has what it decides from.
"""

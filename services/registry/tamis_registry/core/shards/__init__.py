"""Shards of the fleet: their reports, those that a plan lists, and streams whose time is restarted."""

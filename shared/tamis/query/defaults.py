"""Defaults of the options of streams, in microseconds."""

# A stream's source may be silent for this long before its shards count as gone. Joins wait for it until then.
MAX_STALL = 3_600_000_000

# Event times may be this far ahead of the clock. One reading from the future makes all later readings late,
# and no correct clock is 10 minutes ahead; Prometheus refuses samples from further ahead for the same
# reason.
MAX_AHEAD = 600_000_000

"""The edge's pure core: what becomes of tuples, by the plan. Time, disk and topics are handed in."""

"""The edge: filters a source's tuples and publishes what the queries need."""

"""One shard at this edge: its source, its run under the plan, its commits and its acknowledgements.

`worker` starts and stops the run of a shard when the plan lists the shard or no longer lists it. `intake`
reads the source, `commits` makes commits durable, and `reports` reports to the registry.
"""

"""Decisions about tuples, by the plan. The code is pure: time, disk and topics are given to it.

`shard_run` follows the protocol for one shard. It serves the stream's topics (`served_topics`,
`topic_run`), keeps the undecided tuples in columns (`rows`), and collects the records to send (`outbox`,
`messages`). `commit` is the state of a shard that survives its edge.
"""

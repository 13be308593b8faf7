"""Decisions about tuples, by the plan. The code is pure: time, disk and topics are given to it.

Begin with `shard_run`, which follows the protocol for one shard. It serves the stream's topics
(`served_topics`, `topic_run`), keeps the undecided tuples in columns (`rows`), and collects the records to
send (`outbox`, `records`). `watched_streams` have columns that depend on earlier readings. `cursor` is the
position in the source, and `commit` the state of a shard that survives its edge.
"""

"""The Kafka source: a topic of readings, its partitions shared by the edges of one consumer group.

Begin with `topic`, the member of the group; a `shard` has the readings of one partition.
"""

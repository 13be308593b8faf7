"""The Kafka source: a topic of readings, its partitions shared by the edges of one consumer group."""

"""Messages of a shard: keys, output partitions, and JSON as `tamis.messaging.records` defines it."""

"""The edge: filters the readings of its sources, omits tuples by proof, and publishes the others.

`service` runs the process, and `edge` is its one loop: `sources` deliver readings, `decode` turns them into
columns, `core` decides by the plan that `plan_reader` has read, and `publishing` sends records to Kafka.
`shards` ties these together for one shard, and `storage` keeps on disk what must survive a crash.
"""

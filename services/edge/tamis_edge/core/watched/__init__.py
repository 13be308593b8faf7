"""Watched streams of a shard: the base stream with columns that compare readings with patterns.

| module | contents |
|---|---|
| `watched_streams` | the watched streams of one shard, with their topics |
| `event_order` | readings that wait for the watermark, and then leave in the order of their event times |
| `key_series` | the series of all keys, and the columns of the watches |
| `checkpoints` | the offset from which a restart can build the series again |
| `matching_rows` | the readings that can pass the filters of a watched stream |
"""

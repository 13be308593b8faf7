"""Sources of readings: each is an offset log, so that a restart reads on from the last commit.

Begin with `base`, the interfaces of a source and of its shards. `kafka` reads the partitions of a topic, and
`file` replays recordings, whose rows `file_rows` reads. `http` and `mqtt` receive readings and acknowledge
them once they are in the journal, from which `journal_shard` reads them. `opening` makes the sources that a
configuration names, and `backfill` opens them again for the history of a stream.
"""

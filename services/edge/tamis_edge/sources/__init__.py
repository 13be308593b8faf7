"""Sources of readings: each is an offset log, so that a restart reads on from the last commit.

`base` has the interfaces of a source and of its shards. `kafka` reads the partitions of a topic, and `file`
replays recordings. `http` and `mqtt` receive readings and acknowledge them once they are in the journal,
from which `journal_shard` reads them. `opening` makes the sources that a configuration names.
"""

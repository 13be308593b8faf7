"""The joiner's checkpoint directory, checked without Spark.

Begin with `start_checks`, which the service runs before the query: it refuses a directory of a fleet with
another number of partitions, and lets the query read topics that were created again from their beginning.
`files` finds files of the query that are missing or damaged and says what to do; `location` says where the
directory is, and compares files with the checksums that Hadoop keeps of them.
"""

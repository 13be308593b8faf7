"""The joiner's checkpoint directory, checked without Spark.

`files` finds files of the query that are missing or damaged and says what to do; `checksums` compares a file
with the checksums that Hadoop keeps of it. `partition_count` refuses a directory of a fleet with another
number of partitions. `recreated_topics` lets the query read topics that were created again from their
beginning.
"""

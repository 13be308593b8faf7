"""The group in Spark Structured Streaming.

Begin with `query`: `session` starts Spark, and `query` starts the one streaming query. Rows that say which
offsets of Kafka a batch reads (`source`) are grouped by output partition and passed to `processor`, which
runs in Python workers (`processes`). There `batch` loads the group from Spark's state, reads and processes
the batch, and returns the records to publish. `jvm_messages` forwards the output of Spark's JVM, and finds
the cause when a query has ended.
"""

"""The group in Spark Structured Streaming.

`session` starts Spark, and `query` starts the one streaming query. Rows that say which offsets of Kafka a
batch reads (`source`) are grouped by output partition (`group_numbers`) and passed to `processor`, which runs
in Python workers (`processes`). There `batch` loads the group from Spark's state, reads and processes the
batch, and returns the records to publish. `failures` finds the cause when a query has ended, and `java_logs`
forwards the output of Spark's JVM.
"""

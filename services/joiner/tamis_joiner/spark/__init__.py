"""The group in Spark Structured Streaming.

`session` starts Spark, and `query` starts the one streaming query. Kafka's records are packed (`packing`),
grouped by output partition (`group_numbers`) and passed to `processor`, which runs in Python workers forked
by `daemon`. There `batch` loads the group from Spark's state, processes the batch and returns the records to
publish. `failures` finds the cause when a query has ended, and `java_logs` forwards the output of Spark's
JVM.
"""

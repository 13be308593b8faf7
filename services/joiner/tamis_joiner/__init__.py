"""The joiner: temporal joins over the shared streams in Spark Structured Streaming.

`service` is the process. `core` processes the records of one output partition and knows neither Kafka nor
Spark; `spark` runs it in a streaming query; `checkpoint` checks the directory of the query; `monitoring`
makes metrics of what the query has written to Kafka.
"""

"""Reading of Kafka by ranges of offsets.

`offsets` reckons which offsets a batch reads. `latest` asks Kafka which offsets there are. `range_reader`
reads ranges, in the Python workers. Nothing here knows Spark: `tamis_joiner.spark.source` connects it.
"""

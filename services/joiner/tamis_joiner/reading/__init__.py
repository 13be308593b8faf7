"""Reading of Kafka by ranges of offsets.

Begin with `offsets`, which asks Kafka which offsets there are, and reckons which of them a batch reads.
`range_reader` reads ranges, in the Python workers. Nothing here knows Spark: `tamis_joiner.spark.source`
connects it.
"""

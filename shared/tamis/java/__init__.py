"""Java: the runtime, and the jars of Spark's Kafka connector and of the embedded broker.

`runtime` finds a Java that is new enough, and `jars` fetches the jars and checks their checksums.
"""

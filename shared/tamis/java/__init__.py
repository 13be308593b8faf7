"""Java: the runtime, and the jars of Spark's Kafka connector and of the embedded broker.

`runtime` finds a Java that is new enough, `jars` fetches the jars and checks their checksums, and
`class_archives` has the options of JVMs that start from archives of their classes.
"""

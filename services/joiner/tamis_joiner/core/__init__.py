"""The joiner without Kafka, Spark or a clock: what one output partition does with its records."""

"""Benches of the joiner's core alone, without Kafka and Spark."""

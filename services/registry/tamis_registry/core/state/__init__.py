"""State of the registry: the durable data, and its form in Kafka.

Begin with `model`. `records` writes and reads it, strictly checked.
"""

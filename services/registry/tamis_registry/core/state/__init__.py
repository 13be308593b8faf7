"""State of the registry: the durable data (`model`), and its form in Kafka (`records`)."""

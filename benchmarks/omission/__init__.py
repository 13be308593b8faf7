"""Omission by itself, without Kafka: its speed, what it retains, and how both grow."""

"""Omission without Kafka: its speed, the share of tuples that it retains, and the growth of both."""

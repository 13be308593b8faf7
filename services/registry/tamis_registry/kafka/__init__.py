"""The registry's Kafka: the topics that hold its state, and the reports of the fleet.

`store` has the one transactional writer and the readers, `topic_admin` creates topics, and `reports` reads
the records of other services, which may be damaged.
"""

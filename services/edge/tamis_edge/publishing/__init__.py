"""Publishing: sends the records of all shards to Kafka, or stores them until Kafka is back.

`publisher` sends the records with an idempotent producer, and `in_flight` lists those that Kafka hasn't
confirmed. `resending` decides when they are sent again after Kafka has refused one of them. While Kafka is
away, records of shards that can't move to another edge go to the spool. A record that Kafka refuses
permanently becomes a dead letter. If Kafka refuses that too, the dead letter is kept in a file
(`dead_letter_files`).
"""

"""Messages between the services over Kafka: topics, records, and connections.

`topics` names every topic, and `records` and `dead_letters` define what the topics contain. `topic_reader`
reads a topic from its beginning and then follows it, which is how services recover state that lives in
compacted topics; `plans` finds the newest plan. `connection` turns errors of the Kafka client into messages
with a cause and advice, and `probe` reports to a service's readiness whether Kafka answers.
"""

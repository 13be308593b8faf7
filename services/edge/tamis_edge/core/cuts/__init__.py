"""Partial aggregates by cuts: what a shard publishes in place of the tuples of window aggregates.

Begin with `partial_topics`, the topics of a shard with a chain of cuts for each (`tamis.operators.cuts`);
`records` is what goes to Kafka, and `fence` what comes before the first cut of a topic that carried tuples.
"""

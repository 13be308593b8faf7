"""Partial aggregates by cuts: what a shard publishes in place of the tuples of window aggregates.

Begin with `chain`, the cuts of one topic (docs/cuts.md has the rules); `partial_topics` has the chains of all
topics of a shard. `cut` is what commits say of them, and `records` what goes to Kafka.
"""

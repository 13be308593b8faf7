"""Records of topics as they come from Kafka.

They are read in two steps, because the columns of a tuple are known only after the group has read the plan
under which the tuple was sent. `envelopes` determines the kind of each record: a tuple, progress, or a final
record. `tuple_columns` then makes columns of the tuples. `kafka_records` is the batch of one topic partition,
with which both begin. A record that can't be read becomes a dead letter.
"""

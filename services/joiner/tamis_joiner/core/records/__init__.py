"""Records of topics as they come from Kafka.

They are read in two steps, because the columns of a tuple are known only after the group has read the plan
under which the tuple was sent. Begin with `envelopes`, which determines the kind of each record of a topic
partition: a tuple, progress, or a final record. `tuple_columns` then makes columns of the tuples;
`usual_tuples` does so quickly for those of the usual form. A record that can't be read becomes a dead letter.
"""

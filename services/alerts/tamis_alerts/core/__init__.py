"""The rules of episodes and of delivery, without Kafka and without a clock.

`episodes` turns alarms and frontiers into events. `rules` reads an alert's options from the plan. `alarm_ids`
recognises alarms that are delivered again. `offset_tracker` decides which offset of a sink's queue may be
committed.
"""

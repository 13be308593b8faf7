"""Records of `tamis.alarms`, and what marks them incomplete.

`join_alarms` makes the alarms of combinations of tuples, `standing_alarms` those of the rows of standing
queries. Both have the form of `alarm_record`. `shed_spans` keeps the spans of event time in which edges shed
tuples under overload: alarms over such a span are marked incomplete.
"""

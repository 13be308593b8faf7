"""Data of an edge on its disk: readings before they are decided, and records while Kafka is away.

`journal` holds readings of HTTP and MQTT until they are decided; `spool` holds decided records until Kafka
has them. Both are SQLite databases (`database`). `disk` keeps room free, so that both can be emptied when the
disk is full.
"""

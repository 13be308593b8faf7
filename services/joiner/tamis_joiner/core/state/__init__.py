"""The checkpointed state of a group: a map from names to bytes, and the encodings of its values.

`state_map` describes the names and the contract of the map. `arrow_format` encodes tuples and records as
Arrow IPC with a format version, so that a later release can read them. `pending_records` stores the records
that wait for a plan.
"""

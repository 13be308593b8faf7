"""The registry's decisions, pure: statements, acknowledgements, frontiers and times in; plans and records
out.

The rules and their names are those of the fleet's protocol (docs/architecture.md); nothing here knows
Kafka, HTTP or a clock. `Registry` is the way in.
"""

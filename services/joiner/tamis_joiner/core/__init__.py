"""The joiner without Kafka, Spark and a clock: how one output partition processes its records.

Begin with `group`: it ties the parts together and holds the state of one output partition while a batch is
processed. `records` reads what comes from Kafka, `compiled_plan` prepares a plan for evaluation, `frontiers`
follows how far each topic has come. `tuples` holds the tuples of joins and drops those that no join needs any
more; `standing_queries` evaluates the queries that count tuples, each a `running_query`; `alarms` makes the
records of both, and `shed_spans` tells which are incomplete. `state` is the map that Spark checkpoints, and
how its values are encoded. The rules are those of `docs/protocol.md`, 7 to 12.
"""

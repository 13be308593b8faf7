"""Plans of the registry: from a draft of the state to a `Change`, through a planner.

`draft_plan` asks the planner for the plan of a draft. `shared_topics` stores the numbers of topics, and
`stream_statistics` the statistics by which new readers choose topics. `retirement` decides when an old
definition ends.
"""

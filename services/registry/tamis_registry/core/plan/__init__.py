"""Plans of the registry: from a draft of the state to a `Change`, through a planner.

Begin with `draft_plan`: it asks the planner for the plan of a draft, and has the statistics and schemas for
it. `shared_topics` stores the numbers of topics. `retirement` decides when an old definition ends.
`sent_aggregates` has the partial aggregates of a topic for explanations.
"""

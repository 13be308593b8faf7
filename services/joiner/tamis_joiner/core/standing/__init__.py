"""Standing queries of one output partition: queries that count tuples and so must get each tuple once.

`running_query` is one query with its synopses; it skips tuples that it has taken before. `standing_queries`
are all queries of the plan, with their part of the state. docs/exactly-once.md describes the whole way of a
tuple from its source to here.
"""

"""Queries in application time as standing queries.

`query` keeps tuples waiting until the watermarks of all streams have passed them, and then takes them in
order of time. `selects` has the SELECTs of a query with the evaluators of their alternatives.
"""

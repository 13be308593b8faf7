"""Standing queries, also called continuous queries: they keep synopses and give rows as tuples arrive.

`tamis run` and the joiner evaluate them by the same objects. Begin with `contract`, the interface of all
kinds, and `compilation`, which makes one from SQL. The kinds are `timeless` (streams without event time),
`application_time` (streams without a bound on time between tuples), `window_aggregates`, `timed_join`, and
`latest_values` (ASOF JOIN). `aggregates` has the aggregates in columns, `row_store` the rows that are kept,
and `recording_runs` evaluates a query over recordings. State is dumped as JSON (`state`).
"""

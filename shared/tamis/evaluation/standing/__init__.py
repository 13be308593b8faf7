"""Standing queries, also called continuous queries: they keep synopses and give rows as tuples arrive.

`tamis run` and the joiner evaluate them by the same objects. `contract` is the interface of all kinds, and
`compilation` makes one from SQL. There are four kinds: `timeless` (streams without event time),
`application_time` (streams without a bound on time between tuples), `window_aggregates`, and `latest_values`
(ASOF JOIN).
`aggregates` has the aggregates in columns, and `recording_runs` evaluates a query over recordings. State is
dumped as JSON (`state`).
"""

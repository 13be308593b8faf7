"""The check behind `tamis verify`: the same alarms and rows with Tamis as without it.

`reference` runs the plain join in DuckDB over the unfiltered recordings, with joins that DuckDB can hash
(`hash_joins`). `compare` compares its alarms with those of Tamis; begin there. `standing` and `aggregates` do
both for the rows of standing queries, and `watched_columns` for the columns of watches. The reference shares
with the rest of Tamis the parsed SQL and the recordings, and nothing else.
"""

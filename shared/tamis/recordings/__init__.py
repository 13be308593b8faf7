"""Recordings: files of readings (CSV, NDJSON, Parquet) to and from rows and typed columns.

`files` reads and writes files, `typed` gives them the columns of a stream, and `json_values` and `iso_times`
convert single columns, also for edges. This module imports none of them: an edge needs no file formats.
"""

"""Recordings: files of readings (CSV, NDJSON, Parquet) to and from rows and typed columns.

Begin with `files`, which reads and writes files, and `typed`, which gives them the columns of a stream.
`json_values` and `times` convert single columns, also for edges. This module imports none of them: an edge
needs no file formats.
"""

"""Recordings: files of readings (CSV, NDJSON, Parquet) to and from rows and typed columns."""

from tamis.recordings.files import Format, format_of, read_rows, write_rows, write_table
from tamis.recordings.typed import ORDER, Recording, read_recording

__all__ = [
    "ORDER",
    "Format",
    "Recording",
    "format_of",
    "read_recording",
    "read_rows",
    "write_rows",
    "write_table",
]

"""Recordings: files of readings (CSV, NDJSON, Parquet) to and from tables and typed columns."""

from tamis.recordings.files import Format, read_table, write_table
from tamis.recordings.typed import Recording, read_recording

__all__ = ["Format", "Recording", "read_recording", "read_table", "write_table"]

"""The file source: recordings in CSV, NDJSON or Parquet, replayed once."""

"""The joiner: temporal joins over the shared streams in Spark Structured Streaming."""

"""The JSON documents of the HTTP API. Event times are microseconds."""

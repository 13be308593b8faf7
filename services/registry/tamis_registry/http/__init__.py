"""The registry's HTTP API."""

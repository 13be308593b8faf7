"""The registry: keeps streams and queries and plans what edges and joiner do."""

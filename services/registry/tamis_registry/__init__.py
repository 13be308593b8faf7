"""The registry: it keeps streams and queries, and plans the work of edges and joiner."""

"""The registry: it keeps streams and queries, and plans the work of edges and joiner.

Begin with `service` (the process) and `registry_loop`: this one loop decides by `core`, which does no I/O,
and writes to Kafka by `kafka`. `http` has the routes and `proving` the processes that parse and prove SQL.
"""

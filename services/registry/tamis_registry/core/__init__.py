"""Decisions of the registry, without I/O: statements, reports and times in; plans and records out.

`registry.Registry` is the entry point. It changes nothing when it decides: it returns a `Change`, which the
caller performs and then reports as done. The rules are the rules of the fleet's protocol
(docs/protocol.md).
"""

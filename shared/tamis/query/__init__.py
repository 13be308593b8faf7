"""Tamis SQL: from text to the typed query model, or to all mistakes of the text with positions and hints.

`parse` is the entry for texts of statements, `condition` for a predicate outside of a query; both return
the types of `model`. A text passes through `syntax` (tokens and syntax trees), `scalars` (typed
expressions), `selects` (queries) and `statements` (definitions and commands). They share a `context` that
collects the mistakes, so that one mistake hides no other. `catalog` says how a statement changes what is
defined; the registry uses it, too. `unsupported` lists the SQL features that are refused, each with what to
write instead.
"""

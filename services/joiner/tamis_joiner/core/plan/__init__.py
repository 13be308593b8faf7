"""A plan prepared for evaluation, once for all partitions of a process.

`compiled_plan` decodes a plan and combines the parts. `compiled_join` finds the results of a definition's
filters among the compiled filters of a topic. `retention_groups` tells how long the joins need the tuples of
a topic, and `join_partners` which topics are joined with each other. `missing_functions` finds alerts whose
Python functions aren't installed here.
"""

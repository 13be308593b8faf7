"""Checks of a machine and of a fleet, for `tamis doctor`.

`finding` has the results, `places` the addresses of the fleet and what they answer. `machine`, `broker` and
`registry` have the checks, and `table` lists all of them in the order in which they run. No check changes
anything.
"""

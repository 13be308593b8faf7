"""Checks of a machine and of a fleet, for `tamis doctor`.

Begin with `table`, which lists all checks in the order in which they run. `places` has the form of a finding,
and the addresses of the fleet with what they answer; `machine`, `broker`, `registry` and `sources` have the
checks. No check changes anything.
"""

"""Routes that show the state of the fleet.

Begin with `readings`, which reads the newest records of topics within limits. `joiner`, `topics` and the
others show what services have reported.
"""

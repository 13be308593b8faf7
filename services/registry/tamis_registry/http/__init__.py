"""The registry's HTTP API: statements, the state of the fleet, events, and the console.

Begin with `api`, which puts the routes together. `definitions` has those that change something, `state` and
`live` those that show something. They answer with the `documents`, whose types are `schemas`.
"""

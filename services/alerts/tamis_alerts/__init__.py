"""The alerts service: groups alarms into episodes and notifies sinks of them.

`service` is the process. The Faust application (`application`) reads alarms and changes the episodes by the
pure rules of `core`; `state_store` keeps their states in memory and in a changelog; `fleet_view` follows the
plans and the joiner's frontiers, which close episodes. `sinks` reads the topic of episodes and notifies.
"""

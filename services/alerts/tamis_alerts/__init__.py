"""The alerts service: groups alarms into episodes and notifies sinks of them.

`service` is the process; begin reading there. The Faust application (`episodes_app`) reads alarms and changes
the episodes by the pure rules of `core`; `state_store` keeps their states in memory and in a changelog;
`fleet_view` follows the plans and the joiner's frontiers, which close episodes. `faust_consumer` is Faust's
consumer with its faults corrected; it passes on batches instead of single records
(docs/decisions/0047-faust.md has the reasons). `sinks` reads the topic of episodes and notifies.
"""

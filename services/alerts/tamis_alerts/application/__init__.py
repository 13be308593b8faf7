"""The Faust application: it reads alarms and writes the events of episodes.

`episodes_app` declares the agent and the timer that change the episodes; `alarm_records` reads the alarms.
`consumer` is Faust's consumer with its faults corrected; it passes on batches instead of single records
(docs/decisions/0047-faust.md has the reasons). `credentials` translates the settings of the connection.
"""

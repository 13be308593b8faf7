"""Notification of sinks: the log, webhooks and Alertmanager.

Each sink has its own queue, so that no sink waits for another; `all_sinks` starts and stops them.
`sink_queue` delivers the events of episodes in order, with the offsets of its consumer group
(`group_offsets`). `notification` makes the requests. `delivery` repeats a request until the sink accepts it
or Tamis gives up. In that case `dead_letter_writer` stores the notification, and `redelivery` sends it again
on request.
"""

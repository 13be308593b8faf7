"""Notification of sinks: the log, webhooks, chats, incidents, e-mail, MQTT and Kafka.

Each sink has its own queue, so that no sink waits for another; `all_sinks` starts and stops them.
`sink_queue` reads the events of episodes in order, with the offsets of its consumer group (`group_offsets`).
`event_delivery` delivers each of them. A transport (`transports`) makes single attempts to send an event.
`delivery` repeats them until the sink accepts the event or Tamis gives up. In that case the notification
becomes a dead letter, and `redelivery` sends it again on request. `silencing` holds openings that a silence
covers.
"""

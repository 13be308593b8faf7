"""Transports of notifications: single attempts to hand one to a sink by HTTP, e-mail, MQTT or Kafka.

`tamis_alerts.sinks.delivery` makes the transport of a sink. An attempt that fails raises `SendError`, which
says whether another one may help.
"""

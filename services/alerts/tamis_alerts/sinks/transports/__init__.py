"""Transports of notifications: single attempts to hand one to a sink by HTTP, e-mail, MQTT or Kafka.

`of_each_kind` makes the transport of a sink. An attempt that fails raises the error of `send_error`, which
says whether another one may help.
"""

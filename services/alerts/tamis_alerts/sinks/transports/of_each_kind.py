"""The transport of each kind of sink."""

from __future__ import annotations

from tamis.settings import KafkaSettings
from tamis_alerts.sink_settings import Email, KafkaTopic, Mqtt, Sink
from tamis_alerts.sinks.transports.email import EmailTransport
from tamis_alerts.sinks.transports.http import HttpTransport
from tamis_alerts.sinks.transports.kafka import KafkaTransport
from tamis_alerts.sinks.transports.mqtt import MqttTransport
from tamis_alerts.sinks.transports.send_error import Transport


def transport_of(sink: Sink, kafka: KafkaSettings) -> Transport:
    """A new transport for a sink, for the running event loop."""
    if isinstance(sink, Mqtt):
        return MqttTransport(sink)
    if isinstance(sink, KafkaTopic):
        return KafkaTransport(sink, kafka)
    if isinstance(sink, Email):
        return EmailTransport(sink)
    return HttpTransport(sink)

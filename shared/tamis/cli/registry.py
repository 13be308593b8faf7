"""`tamis registry`: the service that takes statements and tells the fleet what to do."""

from __future__ import annotations

import click

from tamis.settings import KafkaSettings, TableSettings, load


@click.command(
    epilog="""\b
Examples:
  tamis registry
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 TAMIS_PARTITIONS=8 tamis registry --host 0.0.0.0

Settings come from the environment: TAMIS_KAFKA_…, TAMIS_PARTITIONS (at the fleet's first start; 4 by
default), TAMIS_REGISTRY_HOST, TAMIS_REGISTRY_PORT, TAMIS_LOG_LEVEL, TAMIS_LOG_FORMAT.
"""
)
@click.option("--host", help="Where to listen; 127.0.0.1 unless TAMIS_REGISTRY_HOST says otherwise.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Which port; 8181 unless TAMIS_REGISTRY_PORT says otherwise, 0 for a free one.",
)
def command(host: str | None, port: int | None) -> None:
    """Run the registry: HTTP API, plans and topics; its state lives in Kafka alone."""
    from tamis_registry.service import run
    from tamis_registry.settings import RegistrySettings

    settings = load(RegistrySettings)
    host = host if host is not None else settings.registry_host
    port = port if port is not None else settings.registry_port
    reach = load(TableSettings).registry(host, settings.registry_hosts)
    run(settings, load(KafkaSettings), host, port, reach)

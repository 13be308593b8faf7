"""`tamis registry`: the service that takes SQL statements and writes plans for the fleet."""

from __future__ import annotations

import click

from tamis.settings import KafkaSettings, TableSettings, load


@click.command(
    epilog="""\b
Examples:
  tamis registry
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 TAMIS_PARTITIONS=8 tamis registry
  TAMIS_REGISTRY_TOKENS_FILE=tokens.yaml TAMIS_REGISTRY_TLS=proxy tamis registry --host 0.0.0.0

Settings come from the environment: TAMIS_KAFKA_…, TAMIS_PARTITIONS (for the first start of a fleet; 4
by default), TAMIS_REGISTRY_HOST, TAMIS_REGISTRY_PORT, TAMIS_REGISTRY_TOKENS_FILE,
TAMIS_REGISTRY_TLS_CERTIFICATE, TAMIS_REGISTRY_TLS_KEY, TAMIS_LOG_LEVEL, TAMIS_LOG_FORMAT.
docs/security.md explains tokens and TLS.
"""
)
@click.option("--host", help="The address to listen on; by default TAMIS_REGISTRY_HOST or 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="The port, 0 for a free one; by default TAMIS_REGISTRY_PORT or 8181.",
)
def command(host: str | None, port: int | None) -> None:
    """Run the registry: it takes SQL over HTTP and writes plans to Kafka, which has its whole state."""
    from tamis_registry.service import run
    from tamis_registry.settings import RegistrySettings

    settings = load(RegistrySettings)
    host = host if host is not None else settings.registry_host
    port = port if port is not None else settings.registry_port
    run(settings, load(KafkaSettings), host, port, load(TableSettings).registry)

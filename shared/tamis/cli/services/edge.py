"""`tamis edge`: the service that filters readings close to their source."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.common.signals import end_on_signals


@click.command(
    epilog="""\b
Examples:
  tamis edge                                        HTTP on 127.0.0.1:8282 for every stream
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 tamis edge --config edge.yaml
"""
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file with the sources; services/edge/example.yaml explains each field.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the journal, the spool and the last plan; replaces the file's and TAMIS_DATA.",
)
@click.option("--name", help="Name of the edge, which its shards' names contain; replaces the file's.")
@click.option(
    "--http-host",
    metavar="ADDRESS",
    envvar="TAMIS_EDGE_HTTP_HOST",
    help="Address of the HTTP source; replaces the file's. TAMIS_EDGE_HTTP_HOST in the environment. Beyond "
    "loopback it needs tokens and TLS: see docs/security.md.",
)
@click.option(
    "--http-port", type=click.IntRange(0, 65535), help="Port of the HTTP source; replaces the file's."
)
def command(
    config: Path | None, data: Path | None, name: str | None, http_host: str | None, http_port: int | None
) -> None:
    """Run an edge: it reads sources and publishes the retained readings to Kafka; SIGTERM stops it."""
    end_on_signals()
    from tamis import kernel_directory

    kernel_directory.choose(kernel_directory.default())  # before anything imports the kernels
    from tamis.settings import KafkaSettings, ServiceSettings, load
    from tamis.settings.known_variables import warn_of_unknown_variables
    from tamis.settings.yaml_file import referred_variables
    from tamis.telemetry.logs import configure_logs
    from tamis_edge.service import serve
    from tamis_edge.settings import load_config, override

    settings = load(ServiceSettings)
    configure_logs("edge", settings.log_level, settings.log_format)
    warn_of_unknown_variables(referred_variables(config))
    serve(override(load_config(config), name, data, http_port, http_host), load(KafkaSettings), settings)

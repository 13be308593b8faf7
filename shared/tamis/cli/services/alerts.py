"""`tamis alerts`: the service that groups alarms into episodes and notifies."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  tamis alerts                                      episodes go to Kafka and to the log
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 tamis alerts --config alerts.yaml
"""
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file with the sinks; services/alerts/example.yaml explains each field.",
)
def command(config: Path | None) -> None:
    """Run the alerts service: it groups alarms into episodes and notifies of each once; SIGTERM stops it."""
    from tamis.settings import KafkaSettings, ServiceSettings, load
    from tamis.settings.known_variables import warn_of_unknown_variables
    from tamis.settings.yaml_file import referred_variables
    from tamis.telemetry.logs import configure_logs
    from tamis_alerts.service import serve
    from tamis_alerts.settings import load_config

    settings = load(ServiceSettings)
    configure_logs("alerts", settings.log_level, settings.log_format)
    warn_of_unknown_variables(referred_variables(config))
    serve(load_config(config), load(KafkaSettings), settings)

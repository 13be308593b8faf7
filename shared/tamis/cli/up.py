"""`tamis up`: the whole fleet on this machine, for the user's own queries."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import click

from tamis.cli._signals import stop_event
from tamis.cli._sql_file import read_sql
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec, port_or_free

KAFKA_PORT = 9092
REGISTRY_PORT = 8181


@click.command(
    epilog="""\b
Examples:
  tamis up demo/first/alerts.sql
  tamis up streams.sql alerts.sql --edge kitchen.yaml --directory ./fleet
"""
)
@click.argument(
    "files",
    metavar="FILE.sql…",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--edge",
    "edges",
    multiple=True,
    metavar="FILE.yaml",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Configuration of an edge, repeatable. By default one edge takes all streams over HTTP.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of all files; the next start continues with them. By default a temporary one.",
)
def command(files: tuple[Path, ...], edges: tuple[Path, ...], directory: Path | None) -> None:
    """Run the whole fleet on this machine, with an embedded Kafka; Ctrl-C stops it."""
    texts = {str(path): read_sql(str(path)) for path in files}
    with tempfile.TemporaryDirectory(prefix="tamis-") as temporary:
        specs = [EdgeSpec(_edge_name(path), path.resolve()) for path in edges] or [EdgeSpec("edge")]
        spec = FleetSpec(
            directory=directory or Path(temporary),
            edges=specs,
            kafka_port=port_or_free(KAFKA_PORT),
            registry_port=port_or_free(REGISTRY_PORT),
        )
        fleet = Fleet(spec, lambda text: click.echo(text, err=True))
        stopping = stop_event()
        try:
            fleet.start(texts, stopping)
            if not stopping.is_set():
                click.echo(_addresses(fleet))
            fleet.supervisor().run(stopping)
        finally:
            # Ctrl-C also ends the program that reads this pipe. The fleet must be stopped all the same.
            with suppress(OSError):
                click.echo("stopping", err=True)
            fleet.stop()


def _edge_name(path: Path) -> str:
    """The edge's name in the file, else the file's name. Raises InputError for a mistake in the file."""
    from tamis_edge.settings import load_config

    config = load_config(path)
    return config.name if "name" in config.model_fields_set else path.stem


def _addresses(fleet: Fleet) -> str:
    lines = [
        "The fleet runs; Ctrl-C stops it.",
        f"  kafka      {fleet.bootstrap}",
        f"  registry   {fleet.registry_url}/docs",
    ]
    lines += [f"  {name:<10} {url}/metrics" for name, url in fleet.telemetry.items() if name != "registry"]
    if fleet.http_sources:
        lines += [f"  readings   POST {url}/v1/streams/<stream>" for url in fleet.http_sources.values()]
    lines += [
        "Alarms as they come:",
        f"  TAMIS_KAFKA_BOOTSTRAP={fleet.bootstrap} tamis watch",
    ]
    return "\n".join(lines)

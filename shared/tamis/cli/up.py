"""`tamis up`: the whole fleet on this machine, for one's own queries."""

from __future__ import annotations

import signal
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

import click

from tamis.cli._sql_file import read_sql
from tamis.errors import UnavailableError
from tamis.fleet.fleet import EdgeSpec, Fleet, FleetSpec, port_or_free

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
    help="An edge's sources; may be given several times. Without it one edge takes every stream over HTTP.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where Kafka and the services keep their files, to go on with next time; else temporary.",
)
def command(files: tuple[Path, ...], edges: tuple[Path, ...], directory: Path | None) -> None:
    """Run the whole fleet on this machine with an embedded Kafka; Ctrl-C stops it cleanly."""
    texts = {str(path): read_sql(str(path)) for path in files}
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    with tempfile.TemporaryDirectory(prefix="tamis-") as temporary:
        specs = [EdgeSpec(_edge_name(path), path.resolve()) for path in edges] or [EdgeSpec("edge")]
        spec = FleetSpec(
            directory=directory or Path(temporary),
            edges=specs,
            kafka_port=port_or_free(KAFKA_PORT),
            registry_port=port_or_free(REGISTRY_PORT),
        )
        fleet = Fleet(spec, lambda text: click.echo(text, err=True))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        try:
            fleet.start(texts, stopping)
            if not stopping.is_set():
                click.echo(_where(fleet))
            while not stopping.wait(1.0):
                gone = fleet.ended()
                if gone:
                    raise UnavailableError(f"{gone} ended", hint=f"see {spec.directory / 'logs' / gone}.log")
        finally:
            # Ctrl-C also ends what this is piped into, and that must not keep the fleet from stopping.
            with suppress(OSError):
                click.echo("stopping", err=True)
            fleet.stop()


def _edge_name(path: Path) -> str:
    """As the file names it, else as the file is named. Raises InputError for what is wrong in the file."""
    from tamis_edge.config import load_config

    config = load_config(path)
    return config.name if "name" in config.model_fields_set else path.stem


def _where(fleet: Fleet) -> str:
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

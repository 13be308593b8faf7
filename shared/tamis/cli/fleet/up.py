"""`tamis up`: the whole fleet on this machine, for the user's own queries."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from tamis.cli.common.output import say, write
from tamis.cli.common.signals import stop_event
from tamis.cli.common.sql_file import read_sql
from tamis.errors import InputError, UnavailableError
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec, port_or_free
from tamis.messaging.rights import Right
from tamis.printable import printable, printable_lines

KAFKA_PORT = 9092
REGISTRY_PORT = 8181
HTTP_PORT = 8282  # of the edge
_HIGHEST_PORT = 65_535


class StartProgress:
    """Prints lines; within `with`, a terminal also shows each service that isn't ready, with what it waits
    for and the time since then. What isn't a terminal gets the lines only.
    """

    def __init__(self, console: Console | None = None) -> None:
        """`console`: by default standard error."""
        self._console = console or Console(stderr=True)
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> StartProgress:
        if self._console.is_terminal:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def say(self, text: str) -> None:
        """Print a line, above the services that are waited for."""
        if self._progress is None:
            say(text)
        else:
            shown = Text(printable_lines(text))
            self._console.print(shown, highlight=False, soft_wrap=True)

    def show_waiting(self, waiting: Mapping[str, str]) -> None:
        """Show these services with what they wait for, and no others."""
        if self._progress is None:
            return
        for name in self._tasks.keys() - waiting.keys():
            self._progress.remove_task(self._tasks.pop(name))
        for name, reason in waiting.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task("", total=None)
            self._progress.update(self._tasks[name], description=printable(f"{name}: {reason}"))


@click.command(
    epilog="""\b
Examples:
  tamis up demo/first/alerts.sql
  tamis up streams.sql alerts.sql --edge kitchen.yaml --directory ./fleet
  tamis up streams.sql alerts.sql --alerts sinks.yaml      Notify chats, mail servers and others
  tamis up streams.sql --directory ./fleet --secure        Kafka with TLS, passwords and ACLs
  tamis up streams.sql --metrics-port joiner=9101 --metrics-port edge=9102
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
    "--alerts",
    metavar="FILE.yaml",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file with the sinks of notifications; services/alerts/example.yaml explains each field. By "
    "default only the log is notified.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of all files; the next start continues with them. By default a temporary one.",
)
@click.option(
    "--metrics-port",
    "metrics_ports",
    multiple=True,
    metavar="SERVICE=PORT",
    help="The port of a service's metrics, repeatable: joiner, alerts, or the name of an edge (`edge` by "
    "default). Other services get free ports. The registry's metrics are on its own port.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Run Kafka with TLS, a password for each service, and ACLs with exactly its rights. "
    "Certificates and passwords are in `logins` of the directory, which only its owner can read.",
)
def command(
    files: tuple[Path, ...],
    edges: tuple[Path, ...],
    alerts: Path | None,
    directory: Path | None,
    metrics_ports: tuple[str, ...],
    secure: bool,
) -> None:
    """Run the whole fleet on this machine, with an embedded Kafka; Ctrl-C stops it."""
    texts = {str(path): read_sql(str(path)) for path in files}
    with tempfile.TemporaryDirectory(prefix="tamis-") as temporary:
        specs = [_edge_spec(path) for path in edges] or [EdgeSpec("edge")]
        spec = FleetSpec(
            directory=directory or Path(temporary),
            edges=specs,
            kafka_port=port_or_free(KAFKA_PORT),
            registry_port=port_or_free(REGISTRY_PORT),
            http_port=port_or_free(HTTP_PORT),
            secure=secure,
            alerts=None if alerts is None else alerts.resolve(),
            alerts_rights=() if alerts is None else _sink_rights(alerts),
            metrics_ports=_metrics_ports(metrics_ports),
        )
        progress = StartProgress()
        fleet = Fleet(spec, progress.say, progress.show_waiting)
        stopping = stop_event()
        try:
            with progress:
                fleet.start(texts, stopping)
            if not stopping.is_set():
                write(_addresses(fleet))
            fleet.supervisor().run(stopping)
        finally:
            # Ctrl-C also ends the program that reads this pipe. The fleet must be stopped all the same.
            with suppress(OSError):
                say("stopping")
            fleet.stop()


def _metrics_ports(given: tuple[str, ...]) -> dict[str, int]:
    """Ports by the names of services, from options SERVICE=PORT. Raises InputError."""
    ports: dict[str, int] = {}
    for one in given:
        name, _, text = one.rpartition("=")
        port = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
        if not name or not 0 < port <= _HIGHEST_PORT:
            hint = f"write SERVICE=PORT with a port from 1 to {_HIGHEST_PORT}, such as joiner=9101"
            raise InputError(f"{one!r} names no port", where="--metrics-port", hint=hint)
        if name in ports or port in ports.values():
            raise InputError(f"{one!r} repeats a service or a port", where="--metrics-port")
        if port_or_free(port) != port:
            what, hint = f"port {port} is in use", "choose another one, or stop what uses it"
            raise UnavailableError(what, where="--metrics-port", hint=hint)
        ports[name] = port
    return ports


def _edge_spec(path: Path) -> EdgeSpec:
    """An edge with a configuration file. It has the name in the file, else the file's name. Its Kafka sources
    on the fleet's cluster need rights. Raises InputError for a mistake in the file.
    """
    from tamis_edge.settings import KafkaSource, load_config

    config = load_config(path)
    rights = []
    for source in config.sources:
        if isinstance(source, KafkaSource) and source.bootstrap is None:
            rights.append(Right("edge", "topic", source.topic, "Read", "a Kafka source"))
            if source.group is not None:
                rights.append(Right("edge", "group", source.group, "Read", "a Kafka source"))
    name = config.name if "name" in config.model_fields_set else path.stem
    return EdgeSpec(name, path.resolve(), tuple(rights))


def _sink_rights(path: Path) -> tuple[Right, ...]:
    """Rights that the sinks of a configuration need beside those of every fleet: to write their topics.

    Raises InputError for a mistake in the file.
    """
    from tamis_alerts.settings import load_config
    from tamis_alerts.sink_settings import KafkaTopic

    topics = [sink.topic for sink in load_config(path).sinks if isinstance(sink, KafkaTopic)]
    # The operator sends dead letters again, by `tamis redeliver`.
    writers = ("alerts", "operator")
    return tuple(Right(who, "topic", name, "Write", "a Kafka sink") for name in topics for who in writers)


def _addresses(fleet: Fleet) -> str:
    lines = [
        "The fleet runs; Ctrl-C stops it.",
        f"  kafka      {fleet.bootstrap}",
        *([fleet.logins.description()] if fleet.logins else []),
        f"  registry   {fleet.registry_url}/docs",
        f"  console    {fleet.registry_url}/",
    ]
    lines += [f"  {name:<10} {url}/metrics" for name, url in fleet.telemetry.items()]
    if fleet.http_sources:
        lines += [f"  readings   POST {url}/v1/streams/<stream>" for url in fleet.http_sources.values()]
    watch = (
        fleet.logins.in_shell("tamis watch", "reader")
        if fleet.logins
        else f"TAMIS_KAFKA_BOOTSTRAP={fleet.bootstrap} tamis watch"
    )
    if not fleet.registry_url.endswith(f":{REGISTRY_PORT}"):
        lines += [
            "Other commands need the address of this registry:",
            f"  export TAMIS_REGISTRY={fleet.registry_url}",
        ]
    lines += ["Alarms as they come:", f"  {watch}"]
    return "\n".join(lines)

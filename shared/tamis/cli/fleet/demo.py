"""`tamis demo`: the whole fleet on real readings from the repository."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tamis.cli.common.signals import stop_event
from tamis.printable import printable_lines


@click.command(
    epilog="""\b
Examples:
  tamis demo
  tamis demo --directory ./demo-run      keeps the data of Kafka and all logs
  tamis demo --secure                    against a Kafka with TLS, passwords and ACLs
"""
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory for the files of Kafka and the services; by default a temporary one.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Run Kafka with TLS, a password for each service, and ACLs with exactly its rights.",
)
def command(directory: Path | None, secure: bool) -> None:
    """Run the fleet on real readings for a minute, compare its alarms with the plain join, and report."""
    from tamis.local.demo import Progress as Seen
    from tamis.local.demo import check, run, show, total
    from tamis.local.fleet import Fleet

    stopping = stop_event()
    console = Console()
    errors = Console(stderr=True)
    began = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
        console=errors,
        disable=not errors.is_terminal,
    )
    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as temporary, bar:
        place = directory or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        task = bar.add_task("readings", total=total(), facts="the fleet starts")

        def watch(_: Fleet, seen: Seen) -> None:
            facts = f"{seen.tuples:,} in, {seen.published:,} kept, {seen.alarms:,} alarms, {seen.live:,} live"
            bar.update(task, completed=seen.tuples, facts=facts)

        def tell(text: str) -> None:
            errors.print(Text(printable_lines(text)), highlight=False)

        outcome = run(place, tell, watch, stopping, secure=secure)
        bar.update(task, facts="comparing with the plain join")
        verdicts = check(outcome)
    show(outcome, verdicts, console)
    console.print(f"the demo took {time.monotonic() - began:.0f} s")
    if not all(verdict.same for verdict in verdicts):
        raise SystemExit(1)

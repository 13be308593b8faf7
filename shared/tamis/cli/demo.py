"""`tamis demo`: the whole fleet on the repository's real readings."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@click.command(
    epilog="""\b
Examples:
  tamis demo
  tamis demo --directory ./demo-run      keeps Kafka's data and all logs
"""
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where Kafka and the services keep their files; a temporary one by default.",
)
def command(directory: Path | None) -> None:
    """Run the fleet on real readings, compare its alarms with the plain join, and report; ends by itself."""
    from tamis.fleet.demo import Progress as Seen
    from tamis.fleet.demo import check, run, total
    from tamis.fleet.fleet import Fleet
    from tamis.fleet.report import show

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
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

        outcome = run(place, lambda text: errors.print(text, highlight=False), watch, stopping)
        bar.update(task, facts="comparing with the plain join")
        verdicts = check(outcome)
    show(outcome, verdicts, console)
    console.print(f"the demo took {time.monotonic() - began:.0f} s")
    if not all(verdict.same for verdict in verdicts):
        raise SystemExit(1)

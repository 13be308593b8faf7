"""`python -m benchmarks [NAME…] [--quick | --write-docs]`: run, print tables, and store figures as JSON."""

from __future__ import annotations

import signal
import time
from importlib import import_module
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from benchmarks.harness import Result, keep, machine, median_of, show, show_goals
from benchmarks.pages import fill
from benchmarks.plots import PAGES
from tamis.errors import TamisError

NAMES = (
    "omission.stores",
    "omission.retention",
    "omission.growth",
    "predicates.matching",
    "predicates.relaxing",
    "predicates.evaluation",
    "stall",
    "edge",
    "edge_aggregates.link",
    "edge_aggregates.joiner",
    "edge_aggregates.delay",
    "joiner",
    "executors",
    "raw_join",
    "partitions",
    "memory",
    "joining.growth",
    "latency",
    "start",
    "standing_start",
    "alerts",
    "bounded.deciding",
    "bounded.evaluating",
    "bounded.representing",
    "bounded.publishing",
    "bounded.counting",
    "constraints.projection",
    "constraints.operations",
    "registry",
    "registry_process",
    "sharing.dispatch",
    "sharing.edge",
    "sharing.match",
    "sharing.growth",
    "sharing.plan_changes",
    "sharing.plan_parts",
    "sharing.many_streams",
    "similarity.watching",
    "similarity.growth",
    "similarity.edge",
    "sharing.implied",
    "sharing.derived",
    "windows",
    "open_panes",
    "field_alerts",
    "latest_values",
    "absence",
    "scale.queues",
    "scale.reckoned",
    "scale.limits",
    "sizing",
)
# The part before the dot stands for all names that begin with it.
GROUPS = dict.fromkeys(name.partition(".")[0] for name in NAMES)
# Rates, latencies and memory of processes vary from run to run; the others repeat their work themselves.
REPEATED = ("alerts", "edge", "joiner", "latency", "raw_join", "start")
ROUNDS = 5
RESULTS = Path(__file__).parent / "results"


@click.command()
@click.argument(
    "names", nargs=-1, type=click.Choice(list({**GROUPS, **dict.fromkeys(NAMES)})), metavar="[NAME]..."
)
@click.option(
    "--quick", is_flag=True, help="Use small sizes: this shows that a benchmark works, not how fast."
)
@click.option(
    "--write-docs",
    is_flag=True,
    help="Write tables and plots into docs/, and the costs of `sizing` into the file of `tamis size`.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=ROUNDS,
    show_default=True,
    help=f"Run each of {', '.join(REPEATED)} so often, and show medians; --quick runs it once.",
)
def main(names: tuple[str, ...], quick: bool, write_docs: bool, rounds: int) -> None:
    """Run all benchmarks, or those named: omission (which is omission.stores, omission.retention and
    omission.growth), predicates, stall, edge, joiner, executors, raw_join, partitions, memory, joining,
    latency, start, alerts, bounded, constraints, registry, registry_process, sharing, similarity, windows,
    latest_values, absence, scale, sizing.
    """
    if quick and write_docs:
        raise click.UsageError("--quick gives no figures for the documentation: leave out --write-docs")
    # SIGTERM must also run each `finally`, which ends the processes of a benchmark.
    signal.signal(signal.SIGTERM, _interrupt)
    out, err = Console(), Console(stderr=True)
    if not out.is_terminal:
        out.width = 120
    facts = machine()
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    out.print(f"{facts['cores']} cores, {facts['memory_gib']} GiB, Python {facts['python']}, {facts['java']}")
    out.print(versions, highlight=False)
    results: list[Result] = []
    for name in [name for name in NAMES if not names or {name, name.partition(".")[0]} & set(names)]:
        began = time.monotonic()

        def say(text: str, name: str = name, began: float = began) -> None:
            err.print(f"[{time.monotonic() - began:4.0f} s] {name}: {text}", markup=False, highlight=False)

        facts = machine()
        try:
            benchmark = import_module(f"benchmarks.{name}")
            times = rounds if name in REPEATED and not quick else 1
            result = median_of([benchmark.run(quick, say) for _ in range(times)])
        except TamisError as error:
            raise click.ClickException(f"{name}: {error}") from error
        results.append(result)
        show(result, out)
        path = keep(result, facts, time.monotonic() - began, RESULTS)
        if write_docs:
            fill(PAGES.parent, result, facts)
            if result.publish is not None:
                result.publish()
        say(f"stored in {path}" + (" and written into docs/" if write_docs else ""))
    show_goals(results, out)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()

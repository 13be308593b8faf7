"""Report of the demo: tuples that the edges omitted, alarms, and the comparison with the plain join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from tamis.local.demo import Outcome

if TYPE_CHECKING:
    from tamis.verification.compare import Verdict

_DECISIONS = ("published", "omitted", "filtered", "late", "dead")


def show(outcome: Outcome, verdicts: Sequence[Verdict], console: Console) -> None:
    """Print the report."""
    _streams(outcome, console)
    _alerts(outcome, verdicts, console)
    everything = outcome.tuples * outcome.published_bytes / max(1, outcome.published)
    sizes = f"{outcome.published_bytes:,} to Kafka; publishing every tuple would take {everything:,.0f}"
    console.print(f"bytes: {sizes} ({1 - outcome.published / max(1, outcome.tuples):.1%} saved)")
    waits = [seconds for found in outcome.latency.values() for seconds in found]
    if waits:
        p50, p99 = np.percentile(waits, [50, 99])
        console.print(f"latency, reading at the edge to alarm in Kafka: p50 {p50:.2f} s, p99 {p99:.2f} s")
    for verdict in verdicts:
        console.print(
            f"verify {verdict.query}: {verdict.reference_alarms:,} alarms of the plain join, "
            f"{verdict.alarms:,} raised, missed {verdict.missed}, extra {verdict.extra}",
            soft_wrap=True,
        )


def _streams(outcome: Outcome, console: Console) -> None:
    """A line for each stream, and below it a line for each edge; at most 80 columns wide, as in a pipe."""
    head = ("stream", "tuples", *_DECISIONS, "retained")
    table = Table(*head, box=box.SIMPLE_HEAD, title="What the edges did")
    for stream in dict.fromkeys(stream for stream, _ in outcome.decisions):
        edges = {edge: counts for (of, edge), counts in outcome.decisions.items() if of == stream}
        whole = {d: sum(counts.get(d, 0) for counts in edges.values()) for d in _DECISIONS}
        for name, counts in {
            stream: whole,
            **{f" {edge}": counts for edge, counts in edges.items()},
        }.items():
            seen = sum(counts.values())
            share = f"{counts.get('published', 0) / seen:.1%}" if seen else "-"
            table.add_row(name, f"{seen:,}", *(f"{counts.get(d, 0):,}" for d in _DECISIONS), share)
    console.print(table)


def _alerts(outcome: Outcome, verdicts: Sequence[Verdict], console: Console) -> None:
    table = Table(
        "alert",
        "alarms",
        "episodes",
        "most live tuples",
        "proven bound",
        box=box.SIMPLE_HEAD,
        title="What was raised",
    )
    for verdict in verdicts:
        bound = outcome.bounds.get(verdict.query)
        table.add_row(
            verdict.query,
            f"{len(outcome.alarms.get(verdict.query, [])):,}",
            f"{outcome.episodes.get(verdict.query, 0):,}",
            f"{outcome.live_peak.get(verdict.query, 0):,}",
            "-" if bound is None else f"{bound:,}",
        )
    console.print(table)

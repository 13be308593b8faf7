"""Verdicts as text for people: a line for each alert, and warnings of lateness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tamis.printable import printable
from tamis.verification.compare import Verdict


def text(verdicts: Sequence[Verdict]) -> str:
    """A line for each verdict, and the readings that made others late."""
    width = max((len(verdict.query) for verdict in verdicts), default=0)
    lines = [*(_line(verdict, width) for verdict in verdicts), *_lateness(verdicts)]
    return "\n".join(map(printable, lines))


def _lateness(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Warnings: the alarms that may be missed because of late readings, and the readings that moved the
    watermark.
    """
    some = [verdict for verdict in verdicts if verdict.lateness]
    for verdict in some:
        count = f"{verdict.late} of {verdict.reference_alarms}" if verdict.late else "some"
        yield (
            f"warning: lateness, not omission, may take {count} alarms of {verdict.query}: a fleet joins late"
            " readings only as far as its state still holds them, and windows leave them out"
        )
    for one in dict.fromkeys(one for verdict in some for one in verdict.lateness):
        yield (
            f"  stream {one.stream}: {one.where}: {one.time} is {_span(one.ahead_seconds)} ahead of the"
            f" readings behind it, of which {one.late} {'is' if one.late == 1 else 'are'} late"
        )


def _span(length: float) -> str:
    days = length / 86_400
    return f"{days:,.0f} days" if days >= 2 else f"{length:g} s"


def _line(verdict: Verdict, width: int) -> str:
    share = 100 * verdict.retained / max(1, verdict.tuples)
    apart = f", {verdict.late} late" if verdict.late else ""
    apart += f", {verdict.at_threshold} at the threshold" if verdict.at_threshold else ""
    return (
        f"{verdict.query:<{width}}  {verdict.tuples} tuples, {verdict.retained} retained ({share:.1f} %), "
        f"{verdict.reference_alarms} alarms in the plain join{apart}, {verdict.alarms} with Tamis: "
        f"missed {verdict.missed}, extra {verdict.extra}"
    )

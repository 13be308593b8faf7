"""The explanation of a query as text for people: the verdict and the reasons first, in plain words."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from tamis.bounded import latest_values, sessions, windows
from tamis.bounded.memory import Memory
from tamis.bounded.timeless.proof import Growth
from tamis.declarations.definitions import Session, Window
from tamis.durations import seconds
from tamis.planning.explanations.explanation import Explanation, Measured, SourceExplanation, WatchedSource
from tamis.planning.refused_changes import RefusedChange
from tamis.printable import printable
from tamis.wording.bound_units import TIME_BOUNDED, bound_unit

WIDTH = 100
_GROWTH_HEADS = ("states to distinguish", "entries kept by Tamis")
# Where a sentence of a reason begins: such a text is a list of reasons.
_NEXT_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def text(explained: Explanation, *, verbose: bool = False) -> str:
    """The explanation for people. `verbose` adds the proofs, the compared values and the formulas."""
    lines = [f"{explained.kind} {explained.name}: {'accepted' if explained.accepted else 'REFUSED'}"]
    for sentence in _sentences(explained.reason):
        lines += wrapped(sentence, "  ")
    for warning in explained.warnings:
        lines += wrapped(f"warning: {warning}", "  ")
    if explained.accepted and explained.history:
        for sentence in _sentences(explained.history):
            lines += wrapped(sentence, "  ")
    if explained.accepted:
        notes = _common_notes(explained.streams)
        for source in explained.streams:
            lines += _source(source, notes, verbose)
        lines += wrapped(". ".join(notes), "  ") if notes else []
    lines += _memory(explained.memory, verbose, told=explained.reason)
    if verbose and not explained.accepted:
        for sentence in _sentences(explained.memory.reason):
            if sentence not in _sentences(explained.reason):
                lines += wrapped(sentence, "    ")
    lines += _growth(explained.growth or ())
    return "\n".join(map(printable, lines))


def refused_change(change: RefusedChange) -> str:
    """A change that is refused, with the queries that would no longer be accepted, for people."""
    lines = [f"{change.statement} ({change.position}): REFUSED"]
    for query in change.queries:
        what = f"{query.kind} {query.name} would no longer be accepted: {query.reason}"
        lines += wrapped(what, "  ")
        for repair in query.repairs:
            lines += wrapped(f"it would be accepted with {repair}", "    ")
    return "\n".join(map(printable, lines))


def _common_notes(sources: Sequence[SourceExplanation]) -> list[str]:
    """The sentences after the first one that stand in the reasons of several sources. They concern the whole
    query, as the note on rounding does, and are printed once.
    """
    found = Counter(note for source in sources for note in _sentences(source.reason)[1:])
    return [note for note, count in found.items() if count > 1]


def _source(source: SourceExplanation, elsewhere: Sequence[str], verbose: bool) -> Iterator[str]:
    """The lines of one source, without the notes that are printed elsewhere."""
    name = source.stream if source.alias == source.stream else f"{source.stream} as {source.alias}"
    reason = ". ".join(note for note in _sentences(source.reason) if note not in elsewhere)
    yield from wrapped(f"{name}: {reason}", "  ")
    if source.watched is not None:
        for line in WatchedSource.of(source.watched).lines():
            yield from wrapped(line, "    ")
    if source.window is not None:
        yield from wrapped(windows_text(source.window), "    ")
    if source.session is not None:
        yield from wrapped(sessions_text(source.session), "    ")
    for line in source.transfer.lines() if source.transfer is not None else ():
        yield from wrapped(line, "    ")
    if source.interval is not None:
        proved = not str(source.certificate).startswith(("heuristic", "trusted"))
        if verbose or not proved:
            what = f"omission interval {seconds(source.interval)}, " if source.window is None else ""
            yield from wrapped(f"{what}{'proof' if proved else 'certificate'}: {source.certificate}", "    ")
        if verbose:
            yield from wrapped(f"value {source.value}", "    ")
        elif source.watched is not None and not source.constant and source.sides is not None:
            yield from wrapped(f"readings are compared by the value {source.value}", "    ")
    if source.key:
        yield from wrapped(f"for each {', '.join(source.key)}", "    ")
    if source.predicate is not None:
        yield from wrapped(f"of tuples with {source.predicate}", "    ")
    if source.implied is not None:
        yield from wrapped(f"the other conditions imply {source.implied_predicate}", "    ")
    if source.selectivity is not None:
        share, basis = source.selectivity.share, source.selectivity.estimated_from
        yield f"    an estimated {100 * share:.3g} % of all, by {basis}"
    yield from wrapped(_dropped(source), "    ")
    yield from wrapped(_without_delay(source.measured), "    ")
    yield from wrapped(_calls(source.measured), "    ")
    for change in source.advice:
        yield from wrapped(f"to omit more: {change}", "    ")


def windows_text(window: Window) -> str:
    """Size and slide of windows, for people."""
    size, slide = seconds(window.size), seconds(window.slide)
    later = f", from {seconds(window.offset)} after 1970-01-01 00:00 UTC on" if window.offset else ""
    if window.cumulative:
        return f"windows of up to {size}, with a row every {slide}{later}"
    return f"windows of {size}{'' if size == slide else f' every {slide}'}{later}"


def sessions_text(session: Session) -> str:
    """The keys and the gap of sessions, for people."""
    of = f"for each {', '.join(session.by)}" if session.by else "of all tuples"
    cut = f", cut after {seconds(session.greatest)}" if session.greatest is not None else ""
    return f"sessions {of}: tuples at most {seconds(session.gap)} apart{cut}"


def _dropped(source: SourceExplanation) -> str:
    """The share of the stream that edges drop: measured, or what decides it."""
    if source.measured is not None:
        tuples, dropped = source.measured.tuples, source.measured.dropped
        if source.measured.rows is not None:
            return _aggregated(source.measured, source.measured.rows)
        return f"dropped at the edge: {dropped:,} of the {tuples:,} tuples of the recording" + (
            f" ({100 * dropped / tuples:.3g} %)" if tuples else ""
        )
    if source.interval is None or source.most_omitted == 0:
        return ""
    filtered = source.filter is not None or source.implied is not None
    of = " of those that pass" if filtered else ""
    most = "" if source.most_omitted is None else f"at most {100 * source.most_omitted:.3g} %{of}, "
    if source.window is None and not source.constant:
        decides = (
            f"{most}many where values rise and fall within {seconds(source.interval)}, none while they only"
            " rise or only fall"
        )
    else:
        each = "window" if source.window is not None else seconds(source.interval)
        decides = f"{most}all but one or a few tuples of each {each}"
    return f"share omitted: {decides}; --input {source.stream}=FILE measures it on a recording"


def _aggregated(measured: Measured, rows: int) -> str:
    """The rows of partial aggregates that edges send in place of a recording."""
    passing = measured.tuples - measured.dropped
    share = f" ({100 * rows / passing:.3g} %)" if passing else ""
    some = "" if not measured.dropped else f"{passing:,} that pass the filter, of "
    of = f"{some}the {measured.tuples:,} tuples of the recording"
    return f"sent for {of}: {rows:,} rows{share} in {measured.records:,} records"


def _without_delay(measured: Measured | None) -> str:
    """The share of a recording that edges would drop if max_delay didn't keep them from waiting, if more."""
    if measured is None or measured.dropped_without_delay is None:
        return ""
    dropped = measured.dropped_without_delay
    if dropped <= measured.dropped:
        return ""
    return f"without max_delay it would be {dropped:,} ({100 * dropped / measured.tuples:.3g} %)"


def _calls(measured: Measured | None) -> str:
    """The calls of Python functions that omission saves on a recording."""
    if measured is None or not measured.calls or measured.calls_saved is None:
        return ""
    calls, saved = measured.calls, measured.calls_saved
    return (
        f"calls of functions: for {calls - saved:,} tuples instead of {calls:,}"
        f" ({100 * saved / calls:.3g} % saved)"
    )


def memory_verdict(memory: Memory) -> str:
    """The verdict on the memory in one line, with the bound where it has a number."""
    number = "" if memory.bound is None else f", at most {memory.bound} {bound_unit(memory.theorem)}"
    return f"memory {memory.verdict}{number}"


def _memory(memory: Memory, verbose: bool, told: str) -> Iterator[str]:
    """The lines of the verdict on the memory, without the reason if it was `told` before."""
    yield f"  {memory_verdict(memory)}"
    if memory.verdict == "bounded":
        for sentence in _sentences(memory.reason) if memory.reason != told else ():
            yield from wrapped(sentence, "    ")
        if memory.bound != 0 and verbose:
            own = (TIME_BOUNDED, windows.WINDOWED, sessions.SESSIONS, latest_values.LATEST)
            described = memory.theorem in own
            rule = memory.theorem if described else f"bound ({memory.theorem})"
            yield from wrapped(f"{rule}: {memory.formula}", "    ")
    what = "have a number" if memory.verdict == "bounded" else "be bounded"
    for repair in memory.repairs:
        yield from wrapped(f"would {what} with: {repair}", "    ")
    if memory.witness is not None:
        yield from wrapped(f"example: {memory.witness}", "    ")


def _growth(growth: Sequence[Growth]) -> Iterator[str]:
    """Lines for the growth of the example, one for each number of tuples."""
    if growth:
        heads = [f"tuples of {growth[0].stream} (a plain join keeps all)", *_GROWTH_HEADS]
        yield "    " + "   ".join(heads)
        for one in growth:
            cells = (one.tuples, "-" if one.states is None else one.states, one.entries)
            yield "    " + "   ".join(f"{cell:>{len(head)}}" for cell, head in zip(cells, heads, strict=True))
    counted = [one.tuples for one in growth if one.states is not None]
    if counted and len(counted) < len(growth):
        yield f"    (-: states are counted for at most {max(counted)} tuples)"


def _sentences(reason: str) -> list[str]:
    """The sentences of a reason, without full stops."""
    return [one.removesuffix(".") for one in _NEXT_SENTENCE.split(reason)]


def wrapped(line: str, indent: str) -> list[str]:
    """A line as lines of the width of explanations; the further ones are indented by two more characters."""
    return textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")

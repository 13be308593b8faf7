"""`tamis.explain`: the proofs about queries, and what edges drop of frames; also as HTML for notebooks.

All text of the HTML is escaped. It has no script and no style sheet, so it is shown in every notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tamis.durations import seconds
from tamis.frames.inputs import Frames, Sql, check_query, name_of, recordings_of, statements_of
from tamis.offline.explain import Explained, asked_queries, explained
from tamis.planning.explanations.explanation import Explanation, SourceExplanation
from tamis.planning.explanations.text import memory_verdict, refused_change, text
from tamis.recordings.times import TimeUnit
from tamis.verification.compare import Verdict

# The colours have enough contrast on white and on black pages.
_YES, _NO = "#1a8a3f", "#d1453b"
_LEFT = ' style="text-align:left"'


def explained_html(explained: Explained) -> str:
    """The explanations: for each query its verdict, a table of its sources, and its memory. The text of
    `tamis explain` is there to unfold.
    """
    if not explained.queries:
        return "<p>no query: nothing to explain</p>"
    changes = (f"<pre>{escape(refused_change(one))}</pre>" for one in explained.changes)
    return "\n".join([*changes, *map(_query, explained.queries)])


def verdicts_html(verdicts: Sequence[Verdict], told: str) -> str:
    """A table of the verdicts. `told`: what `tamis verify` prints, to unfold."""
    heads = ("alert", "", "tuples", "retained", "alarms of the plain join", "alarms", "missed", "extra")
    rows = (
        (
            escape(one.query),
            _badge(one.same, "same", "differs"),
            f"{one.tuples:,}",
            f"{one.retained:,} ({100 * one.retained / max(1, one.tuples):.1f} %)",
            f"{one.reference_alarms:,}",
            f"{one.alarms:,}",
            f"{one.missed:,}",
            f"{one.extra:,}",
        )
        for one in verdicts
    )
    return _table(heads, rows) + _unfolded("as text", told)


def _query(explained: Explanation) -> str:
    verdict = _badge(explained.accepted, "accepted", "refused")
    parts = [f"<h4>{escape(explained.kind)} {escape(explained.name)} {verdict}</h4>"]
    parts.append(_paragraph(explained.reason))
    parts += [_paragraph(f"warning: {one}") for one in explained.warnings]
    if explained.accepted and explained.history:
        parts.append(_paragraph(explained.history))
    if explained.accepted:
        heads = ("source", "for each", "filter at the edge", "omission", "dropped", "why")
        parts.append(_table(heads, map(_source, explained.streams)))
    memory = explained.memory
    parts.append(_paragraph(memory_verdict(memory)))
    if memory.reason != explained.reason:
        parts.append(_paragraph(memory.reason))
    help_with = "have a number" if memory.verdict == "bounded" else "be bounded"
    parts += [_paragraph(f"would {help_with} with: {one}") for one in memory.repairs]
    return "\n".join([*parts, _unfolded("as text, with proofs", text(explained, verbose=True))])


def _source(source: SourceExplanation) -> Iterable[str]:
    filters = [one for one in (source.predicate, source.implied_predicate) if one is not None]
    name = source.stream if source.alias == source.stream else f"{source.stream} as {source.alias}"
    yield escape(name)
    yield escape(", ".join(source.key))
    yield f"<code>{escape(' AND '.join(filters))}</code>" if filters else ""
    if source.interval is None:
        yield "none"
    else:
        value = "" if source.value is None else f" by <code>{escape(source.value)}</code>"
        yield f"within {escape(seconds(source.interval))}{value}"
    yield _dropped(source)
    yield "<br>".join(map(escape, (source.reason, *(f"to omit more: {one}" for one in source.advice))))


def _dropped(source: SourceExplanation) -> str:
    if source.measured is None:
        return ""
    dropped, tuples = source.measured.dropped, source.measured.tuples
    return f"{dropped:,} of {tuples:,} ({100 * dropped / max(1, tuples):.3g} %)"


def _badge(holds: bool, yes: str, no: str) -> str:
    return f'<strong style="color:{_YES if holds else _NO}">{yes if holds else no}</strong>'


def _paragraph(what: str) -> str:
    return f"<p>{escape(what)}</p>"


def _unfolded(title: str, what: str) -> str:
    return f"<details><summary>{title}</summary><pre>{escape(what)}</pre></details>"


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col"{_LEFT}>{escape(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td{_LEFT}>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class Explanations:
    """The explanations of queries, in the order of the SQL. As text it is what `tamis explain` prints."""

    found: Explained

    @property
    def accepted(self) -> bool:
        """True if every query, and every change of a stream or function, is accepted."""
        return self.found.accepted

    def document(self) -> dict[str, Any]:
        """The JSON document of `tamis explain --json`."""
        return self.found.document()

    def text(self, *, verbose: bool = False) -> str:
        """The explanations for people. `verbose` adds the proofs, the compared values and the formulas."""
        return self.found.text(verbose=verbose)

    def __len__(self) -> int:
        return len(self.found.queries)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.found.queries)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """The text, as a Python shell shows it."""
        return str(self)

    def _repr_html_(self) -> str:
        """The explanations as notebooks show them."""
        return explained_html(self.found)


def explain(
    sql: Sql,
    frames: Frames | None = None,
    *,
    query: str | None = None,
    witness: bool = False,
    time_unit: TimeUnit | None = None,
    as_arrived: bool = False,
) -> Explanations:
    """Which readings of each query can be omitted and how much memory it needs, or why it is refused.

    Arguments: as of `tamis.run`. With frames, edges filter each one for each query alone, and the share that
    they drop is in the result; not every stream needs one. `query`: only the query of this name. `witness`:
    run the example of an unbounded query, and show how its memory grows.

    Raises SqlErrors for mistakes in the SQL, and InputError for an unknown query or wrong frames.
    """
    check_query(query)
    catalog, statements = statements_of(sql)
    chosen = asked_queries(catalog, statements, query, name_of(sql))
    recordings = (
        recordings_of(catalog, chosen, frames, time_unit, complete=False, as_arrived=as_arrived)
        if frames is not None
        else {}
    )
    return Explanations(explained(chosen, catalog, statements, recordings, witness=witness))

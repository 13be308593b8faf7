"""Omission rules of a query: interval, key, value and sides of every source, with the reason.

Rows of one stream without a later tuple of the same key within a length d, as NO READING says, are silences.
Both occurrences of the stream may omit tuples by the rule for values that don't matter, with the interval
d - 1 microsecond. The rule keeps a tuple in each closed span of this length that contains one (of the same
key). Let x be a tuple without another one in (t_x, t_x + d]. The span [t_x, t_x + d - 1] contains x, and no
tuple of another time, so a tuple of the time t_x is kept. It passes the same filter, and it is a row. Let y
be a kept tuple with no kept one in (t_y, t_y + d], which is the span [t_y + 1, t_y + d]. That span contains
no tuple at all. So the rows are the same, except that one of several last tuples of one time may stand for
all of them.

Each filter of the later occurrence must be one of the row's. Otherwise a kept tuple that ends no silence
could stand for one that does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tamis.analysis.conjuncts import AbsentPart, Analysis
from tamis.analysis.partition_keys import Keys
from tamis.analysis.topology import omission_interval
from tamis.certificates.certificate import Certificate
from tamis.certificates.certify import certify
from tamis.certificates.interval_arithmetic.derivatives import box_of
from tamis.certificates.interval_arithmetic.subdivision import QueryEffort
from tamis.certificates.margins import rounding_note
from tamis.declarations.definitions import Window
from tamis.declarations.streams import StreamDef
from tamis.durations import seconds
from tamis.expressions.nodes import Expr, Literal, conjunction
from tamis.expressions.signatures import call
from tamis.plan.model import Sides
from tamis.plan.omission import Omission, bare


def silence_of(alias: str, analysis: Analysis) -> int | None:
    """The length d in microseconds, if the rows of `alias` are silences; None otherwise."""
    if len(analysis.aliases) != 2 or len(analysis.absences) != 1 or analysis.conditions:
        return None
    (part,) = analysis.absences
    (later,) = part.aliases
    if alias == later or analysis.streams[alias].name != analysis.streams[later].name or part.conditions:
        return None
    if any(left.name != right.name for left, right in part.equalities):
        return None
    predicates = analysis.predicates
    own = {bare(one) for one in predicates[alias]}
    if not all(bare(one) in own for one in predicates[later]):
        return None
    longest, shortest = analysis.reach(later, alias), analysis.reach(alias, later)
    return longest if shortest == -1 else None


def decide(analysis: Analysis, keys: Keys, *, heuristic: bool = False) -> tuple[Omission, ...]:
    """The omission of each source, in the order of FROM. With `heuristic`, a check on a grid may replace the
    proof.
    """
    work = QueryEffort()
    return tuple(_decide(Source(alias, analysis, keys), heuristic, work) for alias in analysis.aliases)


@dataclass(frozen=True)
class Source:
    """A source whose omission is decided."""

    alias: str
    analysis: Analysis
    keys: Keys

    @cached_property
    def absence(self) -> AbsentPart | None:
        """The NOT EXISTS that the source is under."""
        return self.analysis.absent.get(self.alias)

    @cached_property
    def interval(self) -> int | None:
        """The omission interval in microseconds: tuples that are at most so far apart may replace those
        between them. 0 or less if there is none, None if it is infinite.
        """
        analysis = self.analysis
        if analysis.window is not None:
            # Whatever the others are, it may be replaced by any tuple of the same window.
            return analysis.window.size
        if analysis.within is not None:
            # Each span of this length that has an alarm keeps one: that of its greatest or its least value.
            return analysis.within
        if self.silence is not None:
            return self.silence - 1
        if self.absence is None:
            return omission_interval(self.alias, _base(analysis), analysis.bounds)
        bounds = (*analysis.bounds, *self.absence.bounds)
        return omission_interval(self.alias, (*_base(analysis), *self.absence.aliases), bounds)

    @cached_property
    def silence(self) -> int | None:
        """The length of a silence in microseconds, if this source's rows are silences; None otherwise."""
        return silence_of(self.alias, self.analysis)


def own_results(source: Source) -> str | None:
    """An alert over one stream, without `within`: each tuple that passes its filter is a row."""
    analysis = source.analysis
    if len(analysis.aliases) == 1 and not analysis.conditions and analysis.within is None:
        return "every tuple that passes is a result of its own"
    return None


def contradiction(source: Source) -> str | None:
    """The conditions contradict each other, and the query never has a row."""
    return source.analysis.contradiction or None


def possibly_alone(source: Source) -> str | None:
    """Beside NOT EXISTS, a tuple that is omitted could be the one that has no partner."""
    analysis = source.analysis
    outside = source.absence is None and source.alias not in analysis.exists
    if analysis.absences and outside and source.silence is None:
        return "each of its tuples may be the one without a partner"
    return None


def bounded_within_windows(source: Source) -> str | None:
    """Another tuple of the same window may be out of the bounds on times."""
    analysis = source.analysis
    if analysis.window is not None and analysis.bounds:
        return "its times are bounded besides its windows"
    return None


def without_interval(source: Source) -> str | None:
    """The bounds on times leave no interval in which a tuple joins (`Source.interval`)."""
    length = source.interval
    if length is None:
        return "no partner bounds the times at which it joins from both sides"
    if length <= 0:
        return (
            "the time bounds leave no interval of positive length in which a replacement could join the same"
            " partners"
        )
    return None


# The rules by which nothing may be omitted, in the order in which they are asked. If none gives a reason, the
# conditions need a certificate (`tamis.certificates.certify`).
RULES: tuple[Callable[[Source], str | None], ...] = (
    own_results,
    contradiction,
    possibly_alone,
    bounded_within_windows,
    without_interval,
)


def _decide(source: Source, heuristic: bool, work: QueryEffort) -> Omission:
    alias, analysis, keys = source.alias, source.analysis, source.keys
    predicates = analysis.predicates
    filters = predicates[alias]
    kept = conjunction(filters)
    partition = keys.partition[alias]

    def nothing(reason: str) -> Omission:
        return Omission.none(alias, partition, kept, f"no omission: {reason}")

    against = next((reason for rule in RULES if (reason := rule(source)) is not None), None)
    if against is not None:
        return nothing(against)
    length = source.interval
    assert length is not None, "there is an interval: see `without_interval`"
    absence, effort = source.absence, work.certificate()
    conditions = analysis.conditions if absence is None else absence.conditions
    # Without a proof, an omitted tuple could be the one that excludes a row: the row would be false.
    heuristic = heuristic and absence is None
    found = certify(conditions, alias, analysis.streams, predicates, heuristic=heuristic, work=effort)
    work.spent(effort)
    box = box_of(conditions, analysis.streams, predicates)
    rounding = rounding_note(conditions, alias, box)
    told = "" if rounding is None else f". {rounding}"
    if not isinstance(found, Certificate):
        return nothing(f"{found.reason}{told}")
    if source.silence is not None:
        absence = analysis.absences[0]  # the key of a row is that of the tuples which end its silence
    rest = keys.rest if absence is None else keys.absent_rest[analysis.absences.index(absence)]
    compared = [c for pair in rest for c in pair if c.alias == alias]
    key = tuple(dict.fromkeys((*partition, *(c.name for c in (*compared, *found.fixed)))))
    present = (call("not", call("is_null", found.present)),) if found.drop_null else ()
    return Omission(
        alias,
        length,
        key,
        found.value,
        found.sides,
        found.rule,
        kept,
        conjunction((*filters, *present)),
        omitted(found.value, found.sides, length, analysis.window) + told,
        analysis.window,
        found.exact,
        found.margin,
        null_keys=len(analysis.aliases) == 1 and _may_be_null(analysis.streams[alias], partition),
    )


def _may_be_null(stream: StreamDef, key: tuple[str, ...]) -> bool:
    return any((column := stream.column(name)) is None or not column.not_null for name in key)


def _base(analysis: Analysis) -> list[str]:
    """The sources that are not under NOT EXISTS."""
    return [alias for alias in analysis.aliases if alias not in analysis.absent]


def omitted(value: Expr | None, sides: Sides, interval: int, window: Window | None) -> str:
    """The tuples that omission by `value` leaves out, for people."""
    if isinstance(value, Literal):
        which = "any" if window is None else "each window of"
        return f"its values do not matter: one tuple in {which} {seconds(interval)} is enough"
    if window is not None:
        extreme = _OF_ONE_WINDOW if window.slide == window.size else _OF_SEVERAL_WINDOWS
        return f"a tuple that is {extreme[sides]} is omitted"
    return f"{_WHAT[sides]} within {seconds(interval)} is omitted"


_WHAT = {
    "both": "a tuple between two higher and two lower ones",
    "above": "a tuple between two higher ones",
    "below": "a tuple between two lower ones",
}
_OF_ONE_WINDOW = {
    "both": "neither the highest nor the lowest of its window",
    "above": "not the highest of its window",
    "below": "not the lowest of its window",
}
_OF_SEVERAL_WINDOWS = {
    "both": "the highest of no window and the lowest of no window",
    "above": "the highest of no window",
    "below": "the lowest of no window",
}

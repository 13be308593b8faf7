"""What is proved of a query, in words about the user's columns."""

from __future__ import annotations

from tamis.bounded.closure import Closure
from tamis.bounded.decide import Reference, Violation
from tamis.bounded.normal_form import ASKED, Conjunction
from tamis.bounded.witness import Witness
from tamis.expressions.nodes import Literal, Type
from tamis.expressions.sql_text import interval, to_sql
from tamis.planning.timeless.places import at_place


def relation(query: Conjunction, closure: Closure, one: Reference) -> str:
    """A comparison between streams: `s.a < t.b`."""
    left, right = query.name(one.tail), query.name(one.head)
    if ASKED in (query.aliases[query.occurrence(node)] for node in (one.tail, one.head)):
        return f"{left if query.aliases[query.occurrence(one.tail)] == ASKED else right} for each group"
    bound = int(closure.between(one.tail, one.head))
    timed = query.nodes[one.tail - 1].kind == "time"
    if closure.fixed(one.tail, one.head):
        # An equality is two comparisons: it reads the same from both.
        first, second, offset = (left, right, bound) if one.tail < one.head else (right, left, -bound)
        return f"{first} = {second}{_offset(offset, timed)}"
    if bound < 0 or (timed and bound % 1_000_000 == 999_999):
        return f"{left} < {right}{_offset(bound + 1, timed)}"
    return f"{left} <= {right}{_offset(bound, timed)}"


def _offset(bound: int, timed: bool) -> str:
    size = interval(abs(bound)) if timed else str(abs(bound))
    return f" {'+' if bound > 0 else '-'} {size}" if bound else ""


def unbounded(query: Conjunction, closure: Closure, failing: Violation) -> str:
    """Why a query needs more memory than any number."""
    alias = query.aliases[failing.occurrence]
    if failing.node is not None:
        return _shown(query, closure, failing.node)
    relations = list(dict.fromkeys(relation(query, closure, one) for one in failing.references))
    own = set(query.own(failing.occurrence))
    columns = list(
        dict.fromkeys(query.name(n) for r in failing.references for n in (r.tail, r.head) if n in own)
    )
    if not query.distinct:
        return (
            f"how many tuples of {alias} a later tuple joins depends on every value of {columns[0]} so far"
            f" ({relations[0]}), and nothing bounds these"
        )
    if failing.condition == "C2" and len(relations) == 1:
        return (
            f"every value of {columns[0]} so far may still be met ({relations[0]}), and nothing bounds these"
        )
    if len(columns) == 1:
        return (
            f"no tuple of {alias} can stand for all others: of {columns[0]} the greatest is needed as well as"
            f" the least, and those between ({' and '.join(relations)})"
        )
    return (
        f"no tuple of {alias} can stand for all others: {' and '.join(relations)} ask for different ones, by"
        f" {' and by '.join(columns)}"
    )


def _shown(query: Conjunction, closure: Closure, node: int) -> str:
    name = query.name(node)
    lacks = [
        word
        for word, has in (("lower", closure.lower(node)), ("upper", closure.upper(node)))
        if abs(has) == float("inf")
    ]
    many = "can have endlessly many values" if len(lacks) > 1 else f"has no {lacks[0]} limit"
    if query.grouped:
        return f"a group, or a value that an aggregate needs, is kept for every {name}, which {many}"
    why = (
        "DISTINCT has to remember all that were given" if query.distinct else "a later tuple may ask for any"
    )
    if node not in query.projected:
        return f"a condition that is no difference needs every value of {name}, which {many}"
    return f"SELECT shows {name}, which {many}: {why}"


def doubt(query: Conjunction, failing: Violation) -> str:
    """Why a condition that fails proves nothing, where no example did."""
    if failing.node in query.vague:
        return f"SELECT shows an expression of {query.name(failing.node)}, which may be the same for many"
    return "no example was found that would prove it"


def scenario(query: Conjunction, witness: Witness) -> str:
    """A witness as an example for people."""
    columns = [query.nodes[node - 1].column for node in witness.key]
    shown = [
        values(query, node, [one[column] for one in witness.stored])
        for node, column in zip(witness.key, columns, strict=True)
    ]
    said = ", ".join("(" + ", ".join(one) + ")" for one in zip(*shown, strict=True))
    streams = {stream for stream, _ in witness.completions[0]} - {ASKED}
    others = ", ".join(sorted(streams - {witness.stream}))
    again = "the same tuples again" if witness.stream in streams or not others else ""
    later = " and ".join(part for part in (f"tuples of {others}" if others else "", again) if part)
    return (
        f"any number of tuples of {witness.stream} with ({', '.join(columns)}) = {said}, …: {later} that come"
        " later tell every choice of them from every other"
    )


def values(query: Conjunction, node: int, numbers: list[int]) -> list[str]:
    """The values that a witness has of a node: where only their order matters, some in that order."""
    kind = query.nodes[node - 1].kind
    if kind == "text":
        return [f"'text{number}'" for number in numbers]
    if kind == "whole":
        return [str(number) for number in numbers]
    if kind == "time":
        return [to_sql(Literal(number, Type.TIMESTAMP)) for number in numbers]
    limits = {one.left: one.bound for one in query.ranges if node in (one.left, one.right)}
    low = at_place(-limits[0]) if 0 in limits else None
    high = at_place(limits[node]) if node in limits else None
    if low is not None and high is not None:
        first, step = low, (high - low) / (len(numbers) + 1)
    else:
        first, step = 0.0 if low is None else low, 1.0
        if low is None and high is not None:
            first = high - len(numbers) - 1
    places = sorted(set(numbers))
    return [f"{first + step * (places.index(number) + 1):.6g}" for number in numbers]

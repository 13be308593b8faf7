"""Messages about queries without time, in terms of the user's columns."""

from __future__ import annotations

from tamis.bounded.timeless.witness import Witness
from tamis.difference_bounds import Closure
from tamis.expressions.double_order import double_at
from tamis.expressions.nodes import Literal, Type
from tamis.expressions.sql_text import interval, to_sql
from tamis.operators.synopses.decide import Reference, Violation
from tamis.plan.conjunction import EXTREME_STREAM, Conjunction


def comparison(query: Conjunction, closure: Closure, one: Reference) -> str:
    """A comparison between streams as text: `s.a < t.b`."""
    left, right = query.name(one.tail), query.name(one.head)
    if EXTREME_STREAM in (query.aliases[query.occurrence(node)] for node in (one.tail, one.head)):
        return (
            f"{left if query.aliases[query.occurrence(one.tail)] == EXTREME_STREAM else right} for each group"
        )
    bound = int(closure.between(one.tail, one.head))
    timed = query.nodes[one.tail - 1].kind == "time"
    if closure.fixed(one.tail, one.head):
        # An equality is two comparisons: both must give the same text.
        first, second, offset = (left, right, bound) if one.tail < one.head else (right, left, -bound)
        return f"{first} = {second}{_offset(offset, timed)}"
    if bound < 0 or (timed and bound % 1_000_000 == 999_999):
        return f"{left} < {right}{_offset(bound + 1, timed)}"
    return f"{left} <= {right}{_offset(bound, timed)}"


def _offset(bound: int, timed: bool) -> str:
    size = interval(abs(bound)) if timed else str(abs(bound))
    return f" {'+' if bound > 0 else '-'} {size}" if bound else ""


def unbounded(query: Conjunction, closure: Closure, failing: Violation) -> str:
    """The reason why a query needs unlimited memory."""
    alias = query.aliases[failing.occurrence]
    if failing.node is not None:
        return _shown(query, closure, failing.node)
    relations = list(dict.fromkeys(comparison(query, closure, one) for one in failing.references))
    own = set(query.own(failing.occurrence))
    columns = list(
        dict.fromkeys(query.name(n) for r in failing.references for n in (r.tail, r.head) if n in own)
    )
    if not query.distinct:
        return (
            f"the number of tuples of {alias} that a later tuple joins depends on every value of"
            f" {columns[0]} so far ({relations[0]}), and nothing bounds these values"
        )
    if failing.condition == "C2" and len(relations) == 1:
        return (
            f"a later tuple may match any value of {columns[0]} so far ({relations[0]}), and nothing bounds"
            " these values"
        )
    if len(columns) == 1:
        return (
            f"no tuple of {alias} can stand for all others: later tuples may need the greatest, the least and"
            f" any other value of {columns[0]} ({' and '.join(relations)})"
        )
    return f"no tuple of {alias} can stand for all others: {_needed(query, closure, failing, own)}"


def _needed(query: Conjunction, closure: Closure, failing: Violation, own: set[int]) -> str:
    """The tuples that comparisons of several columns need, which may be different ones."""
    needed: dict[str, dict[str, None]] = {}
    for one in failing.references:
        # The later value must be greater than the own one, or less.
        node, extreme = (one.tail, "least") if one.tail in own else (one.head, "greatest")
        text = f"the tuple with the {extreme} {query.name(node)}"
        needed.setdefault(comparison(query, closure, one), {})[text] = None
    texts = [f"{relation} needs {' and '.join(tuples)}" for relation, tuples in needed.items()]
    return f"{', and '.join(texts)}, which may be different tuples"


def _shown(query: Conjunction, closure: Closure, node: int) -> str:
    name = query.name(node)
    lacks = [
        word
        for word, has in (("lower", closure.lower(node)), ("upper", closure.upper(node)))
        if abs(has) == float("inf")
    ]
    many = "has no limits" if len(lacks) > 1 else f"has no {lacks[0]} limit"
    if query.nodes[node - 1].kind == "dense":
        many = "has too many possible values to keep"
    if query.grouped:
        return f"a group, or a value that an aggregate needs, is kept for every {name}, which {many}"
    why = (
        "to leave out duplicate rows, all rows are remembered"
        if query.distinct
        else "a later tuple may need any of its values"
    )
    if node not in query.projected:
        return f"a join condition needs every value of {name}, which {many}"
    return f"SELECT shows {name}, which {many}: {why}"


def caveat(query: Conjunction, failing: Violation) -> str:
    """The reason why a failing condition proves nothing, where no example was found."""
    if failing.node in query.in_expressions:
        name = query.name(failing.node)
        return f"SELECT shows {name} only in an expression, which may be equal for many values of {name}"
    return "no example shows that the query is unbounded"


def scenario(query: Conjunction, witness: Witness) -> str:
    """A witness as an example for users."""
    columns = [query.nodes[node - 1].column for node in witness.key]
    shown = [
        values(query, node, [one[column] for one in witness.stored])
        for node, column in zip(witness.key, columns, strict=True)
    ]
    texts = ", ".join("(" + ", ".join(one) + ")" for one in zip(*shown, strict=True))
    streams = {stream for stream, _ in witness.completions[0]} - {EXTREME_STREAM}
    others = ", ".join(sorted(streams - {witness.stream}))
    again = "the same tuples, sent again," if witness.stream in streams or not others else ""
    later = " and ".join(part for part in (f"later tuples of {others}" if others else "", again) if part)
    return (
        f"any number of tuples of {witness.stream} with ({', '.join(columns)}) = {texts}, …: {later}"
        " give different rows for each subset of these"
    )


def values(query: Conjunction, node: int, numbers: list[int]) -> list[str]:
    """The values of a node in a witness as texts. Where only their order matters, any values in
    that order.
    """
    kind = query.nodes[node - 1].kind
    if kind == "text":
        return [f"'text{number}'" for number in numbers]
    if kind == "whole":
        return [str(number) for number in numbers]
    if kind == "time":
        return [to_sql(Literal(number, Type.TIMESTAMP)) for number in numbers]
    limits = {one.left: one.bound for one in query.ranges if node in (one.left, one.right)}
    low = double_at(-limits[0]) if 0 in limits else None
    high = double_at(limits[node]) if node in limits else None
    if low is not None and high is not None:
        first, step = low, (high - low) / (len(numbers) + 1)
    else:
        first, step = 0.0 if low is None else low, 1.0
        if low is None and high is not None:
            first = high - len(numbers) - 1
    places = sorted(set(numbers))
    return [f"{first + step * (places.index(number) + 1):.6g}" for number in numbers]

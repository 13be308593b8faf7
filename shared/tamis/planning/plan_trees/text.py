"""The tree of a query's operators as text: below each operator its details, and its inputs behind arrows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tamis.planning.explanations.text import WIDTH, wrapped
from tamis.planning.plan_trees.operators import NOTHING, PlanBound, PlanOperator, QueryPlan
from tamis.planning.plan_trees.words import detail
from tamis.printable import printable

_ARROW = "->  "


def plan_text(plan: QueryPlan) -> str:
    """The plan of a query for people."""
    if plan.root is None:
        why = f"no plan: {plan.reason}" if plan.accepted else f"REFUSED, so it has no plan: {plan.reason}"
        lines = textwrap.wrap(f"{plan.kind} {plan.name}: {why}", WIDTH, subsequent_indent="  ")
        return "\n".join(map(printable, lines))
    lines = [f"{plan.kind} {plan.name}: {_whole(plan.bound)}"]
    if plan.bound is not None and all(one.bound is None for one in plan.root.every()):
        # No operator has a part of the bound: its formula is for all of them.
        lines += wrapped(f"bound: {plan.bound.formula}", "  ") if plan.bound.formula else []
    lines += _operator(plan.root, "  ", "")
    return "\n".join(map(printable, lines))


def _whole(bound: PlanBound | None) -> str:
    """The bound of all operators together."""
    if bound is None:
        return "its memory is not bounded"
    if bound.most is None:
        return "its memory is bounded, without a number"
    return f"at most {bound.most} {bound.unit}" if bound.most else "keeps nothing"


def _operator(one: PlanOperator, indent: str, arrow: str) -> Iterator[str]:
    """The lines of an operator and of those below it."""
    subject = f" {one.subject}" if one.subject else ""
    stateless = "" if one.keeps != NOTHING else ", keeps nothing"
    yield f"{indent}{arrow}{one.operator}{subject}  ({one.runs}{stateless})"
    own = indent + " " * len(arrow) + "  "
    bound = "" if one.bound is None else one.bound.text
    state = () if stateless else (*detail("keeps", one.keeps), *detail("bound", bound))
    for name, text in (*one.details, *state):
        yield from _wrapped(f"{name}: {text}", own)
    for below in one.inputs:
        yield from _operator(below, own, _ARROW)


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(
        line, max(WIDTH, len(indent) + 40), initial_indent=indent, subsequent_indent=indent + "  "
    )

"""The tree of a query's operators, as data and as the JSON of the interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from tamis.plan.model import GREATEST
from tamis.wording.bound_units import Unit

Place = Literal["edge", "joiner"]
Kind = Literal["alert", "stream"]
Details = tuple[
    tuple[str, str], ...
]  # names and texts, in the order in which they are shown; names may recur

NOTHING = "nothing"


@dataclass(frozen=True)
class PlanBound:
    """The greatest number of `unit` that are kept, and its formula. `most` is None if there is no proven
    number; the formula is empty if there is none.
    """

    most: int | None
    unit: Unit
    formula: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        most = self.most
        # orjson knows numbers of 64 bits.
        number = most if most is None or most <= GREATEST else orjson.Fragment(str(most))
        return {"most": number, "unit": self.unit, "formula": self.formula or None}

    @staticmethod
    def of(document: Mapping[str, Any] | None) -> PlanBound | None:
        """The bound of a JSON object; None for null."""
        if document is None:
            return None
        return PlanBound(document["most"], document["unit"], document["formula"] or "")

    @property
    def text(self) -> str:
        """The bound in one line; empty if there is neither a number nor a formula."""
        number = "" if self.most is None else f"at most {self.most} {self.unit}"
        return " = ".join(one for one in (number, self.formula) if one)


@dataclass(frozen=True)
class PlanOperator:
    """One operator of a plan, and those whose rows it takes.

    `subject`: the stream or table that it reads, empty for others. `keeps`: the state between tuples.
    `bound`: that of the state, where the plan or the verdict has one for this operator.
    """

    operator: str
    runs: Place
    subject: str = ""
    details: Details = ()
    keeps: str = NOTHING
    bound: PlanBound | None = None
    inputs: tuple[PlanOperator, ...] = ()

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        return {
            "operator": self.operator,
            "runs": self.runs,
            "subject": self.subject or None,
            "details": [{"name": name, "text": text} for name, text in self.details],
            "keeps": self.keeps,
            "bound": None if self.bound is None else self.bound.document(),
            "inputs": [one.document() for one in self.inputs],
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> PlanOperator:
        """The tree of a JSON object."""
        return PlanOperator(
            document["operator"],
            document["runs"],
            document["subject"] or "",
            tuple((one["name"], one["text"]) for one in document["details"]),
            document["keeps"],
            PlanBound.of(document["bound"]),
            tuple(map(PlanOperator.of, document["inputs"])),
        )

    def worded(self, words: Callable[[str], str]) -> PlanOperator:
        """The tree with all of its texts in other words."""
        return replace(
            self,
            subject=words(self.subject),
            details=tuple((name, words(text)) for name, text in self.details),
            inputs=tuple(one.worded(words) for one in self.inputs),
        )

    def without_bounds(self) -> PlanOperator:
        """The tree of a query that was accepted without a proof: parts of a bound prove nothing then."""
        return replace(self, bound=None, inputs=tuple(one.without_bounds() for one in self.inputs))

    def every(self) -> Iterator[PlanOperator]:
        """This operator and all below it."""
        yield self
        for one in self.inputs:
            yield from one.every()


@dataclass(frozen=True)
class QueryPlan:
    """The plan of one query. `root` is None if it has none, and `reason` then says why."""

    name: str
    kind: Kind
    accepted: bool
    reason: str = ""
    bound: PlanBound | None = None  # of all operators together
    root: PlanOperator | None = None

    def document(self) -> dict[str, Any]:
        """The JSON object of the interface."""
        return {
            "name": self.name,
            "kind": self.kind,
            "accepted": self.accepted,
            "reason": self.reason or None,
            "bound": None if self.bound is None else self.bound.document(),
            "plan": None if self.root is None else self.root.document(),
        }

    @staticmethod
    def of(document: Mapping[str, Any]) -> QueryPlan:
        """The plan of a JSON object."""
        return QueryPlan(
            document["name"],
            document["kind"],
            document["accepted"],
            document["reason"] or "",
            PlanBound.of(document["bound"]),
            None if document["plan"] is None else PlanOperator.of(document["plan"]),
        )

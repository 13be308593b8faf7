"""Types of the document of an alert's physical plan: the tree of its operators."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict


class PlanBound(TypedDict):
    """The greatest number of tuples or entries that are kept."""

    most: Annotated[int | None, Field(description="Null if there is no proven number")]
    unit: Literal["tuples", "entries"]
    formula: Annotated[str | None, Field(description="How the number follows; null if there is none")]


class PlanDetail(TypedDict):
    """One thing that an operator does, such as its filter."""

    name: str
    text: Annotated[str, Field(description="For people; conditions and columns as SQL")]


class PlanOperator(TypedDict):
    """An operator, and those whose rows it takes."""

    operator: Annotated[str, Field(description="Such as `Scan`, `TimeJoin` or `Windows`")]
    runs: Annotated[Literal["edge", "joiner"], Field(description="The service that runs it")]
    subject: Annotated[str | None, Field(description="The stream or table that it reads; else null")]
    details: Annotated[list[PlanDetail], Field(description="In this order; a name may come several times")]
    keeps: Annotated[str, Field(description="Its state between tuples, for people; or `nothing`")]
    bound: Annotated[PlanBound | None, Field(description="Of its state; null if it has none of its own")]
    inputs: Annotated[list[PlanOperator], Field(description="The operators below it")]


class QueryPlan(TypedDict):
    """The physical plan of an alert, as `tamis explain --plan --json` has it."""

    name: str
    kind: Literal["alert", "stream"]
    accepted: bool
    reason: Annotated[str | None, Field(description="Why there is no plan; null if there is one")]
    bound: Annotated[PlanBound | None, Field(description="Of all operators together")]
    plan: Annotated[PlanOperator | None, Field(description="The operator that gives the rows")]

"""Types of the answers to applied and explained statements."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from tamis_registry.core.statements.outcomes import Result
from tamis_registry.http.schemas.definitions import Alert, Pattern, Stream

Verdict = Literal["bounded", "unbounded", "unknown"]


class Omission(TypedDict):
    """The rule by which edges omit readings of a source, or the reason why they may not."""

    interval: Annotated[
        int | None, Field(description="Omission interval in microseconds; null if no reading may be omitted")
    ]
    sides: Annotated[
        str | None,
        Field(description="The values that must stand around an omitted one: `above`, `below` or `both`"),
    ]
    certificate: Annotated[str | None, Field(description="How the rule was proved")]
    reason: str


class Needy(TypedDict):
    """Another reader of a topic that needs every tuple, so that edges publish all that pass its filter."""

    kind: Literal["alert", "subscriber"]
    name: str
    filter: Annotated[
        str | None, Field(description="As SQL, of which a long one is cut off; null: every tuple")
    ]
    why: str


class Sharing(TypedDict):
    """The topic from which a query reads a source."""

    topic: str
    how: str
    share_before: Annotated[float, Field(description="Estimated share of the stream, without it")]
    share: Annotated[float, Field(description="Estimated share of the stream that the topic has")]
    estimated_from: str
    reason: str
    needs_all: NotRequired[
        Annotated[list[Needy], Field(description="The first 10; of POST /v1/explain and EXPLAIN only")]
    ]
    needs_all_count: NotRequired[Annotated[int, Field(description="The number of all of them", ge=0)]]


class Amount(TypedDict):
    """Records, and rows of partial aggregates in them."""

    records: float
    rows: float


class Sent(TypedDict):
    """The form in which edges send a source to Kafka. The numbers are those of one shard; null if nothing
    limits them.
    """

    form: Literal["partial aggregates", "readings", "representatives"]
    text: Annotated[list[str], Field(description="Sentences for people")]
    topic: NotRequired[Annotated[str, Field(description="Of the registry")]]
    others: NotRequired[
        Annotated[list[str], Field(description="The first 10 further alerts that share the topic")]
    ]
    others_count: NotRequired[Annotated[int, Field(description="The number of all further alerts")]]
    expected_a_minute: NotRequired[Amount | None]
    most_a_minute: NotRequired[
        Annotated[Amount | None, Field(description="Each late reading adds at most one row and one record")]
    ]
    cuts_a_minute: NotRequired[int]
    readings_a_minute: NotRequired[int | None]
    open_rows: NotRequired[Annotated[int | None, Field(description="Rows that an edge keeps")]]
    memory: NotRequired[Annotated[int | None, Field(description="At the edge, in bytes")]]
    partitions: NotRequired[int]


class Measured(TypedDict):
    """The tuples of a recording, and those that an edge would drop."""

    tuples: int
    dropped: int
    calls: NotRequired[int]
    calls_saved: NotRequired[int]
    dropped_without_delay: NotRequired[int]
    records: NotRequired[Annotated[int, Field(description="Records of partial aggregates")]]
    rows: NotRequired[Annotated[int, Field(description="Rows of partial aggregates in them")]]


class ExplainedSource(TypedDict):
    """One source of a query: what edges omit of it, and why."""

    alias: str
    stream: str
    key: Annotated[list[str], Field(description="Only tuples that are equal in these columns are compared")]
    predicate: Annotated[str | None, Field(description="The filter that edges apply, as SQL")]
    value: Annotated[str | None, Field(description="What edges compare: a column or an expression")]
    omission: Omission
    similar: NotRequired[
        Annotated[dict[str, Any], Field(description="Calls of `similar`, and what edges keep for them")]
    ]
    over: NotRequired[
        Annotated[dict[str, Any], Field(description="Window functions, and what edges keep for them")]
    ]
    window: NotRequired[Annotated[dict[str, Any], Field(description="Size and slide, in microseconds")]]
    session: NotRequired[Annotated[dict[str, Any], Field(description="Gap and greatest length")]]
    sent: NotRequired[Annotated[Sent, Field(description="Without it, the omission says what is sent")]]
    selectivity: NotRequired[
        Annotated[dict[str, Any], Field(description="The estimated share of tuples that pass the filter")]
    ]
    most_omitted: NotRequired[
        Annotated[float, Field(description="The greatest share that omission can leave out", ge=0, le=1)]
    ]
    measured: NotRequired[Measured]
    advice: NotRequired[Annotated[list[str], Field(description="Changes that allow more omission")]]
    sharing: NotRequired[
        Annotated[Sharing, Field(description="For queries that the fleet runs or would run")]
    ]


class Memory(TypedDict):
    """The verdict on the memory of a query."""

    verdict: Verdict
    bound: Annotated[
        int | None, Field(description="At most so many tuples or entries; null without a number")
    ]
    formula: str
    theorem: str
    reason: str
    repairs: Annotated[list[str], Field(description="Changes each of which bounds the memory")]
    witness: Annotated[str | None, Field(description="An example that proves that the memory is unbounded")]


class Replacement(TypedDict):
    """The alert in service that a query would replace."""

    plan: Annotated[int, Field(description="The plan version that made its definition")]
    changes: Annotated[
        list[str],
        Field(description="Differences in topics, in what edges publish, in the bound and in options"),
    ]
    transition: Annotated[
        list[str],
        Field(description="When the new definition begins, and what happens to live state and open episodes"),
    ]


class ExplainedQuery(TypedDict):
    """A query before it runs: whether it is accepted, what edges omit, and its memory."""

    name: str
    kind: Literal["alert", "stream"]
    accepted: bool
    streams: list[ExplainedSource]
    memory: Memory
    warnings: NotRequired[Annotated[list[str], Field(description="Mistakes that the query probably has")]]
    history: NotRequired[Annotated[str, Field(description="What reading earlier readings means for it")]]
    growth: NotRequired[list[dict[str, Any]]]
    replaces: NotRequired[
        Annotated[Replacement, Field(description="Of the registry: for an alert that replaces another form")]
    ]


class Explanations(TypedDict):
    """Every query of a text."""

    queries: list[ExplainedQuery]


class Replanned(TypedDict):
    """A query that reads a changed stream or function."""

    kind: str
    name: str
    result: Literal["replaced", "kept"]
    verdict: Verdict
    changes: Annotated[list[str], Field(description="Differences that its owner should know")]


class Outcome(TypedDict):
    """The result of one statement."""

    statement: Annotated[str, Field(description="Its kind, as `create alert`")]
    result: Result
    kind: NotRequired[Annotated[str, Field(description="What it defines or drops: `alert`, `stream`, …")]]
    name: NotRequired[str]
    plan: NotRequired[Annotated[int, Field(description="The newest plan version")]]
    where: NotRequired[Annotated[str, Field(description="With `kept`: the place of the statement")]]
    in_service: NotRequired[Annotated[str, Field(description="With `kept`: the definition that stays")]]
    asked: NotRequired[Annotated[str, Field(description="With `kept`: the statement that differs")]]
    replanned: NotRequired[list[Replanned]]
    notices: NotRequired[list[str]]
    verdict: NotRequired[Annotated[Verdict, Field(description="On the memory of a query")]]
    explain: NotRequired[Explanations]
    rows: NotRequired[
        Annotated[
            list[Alert] | list[Stream] | list[Pattern],
            Field(description="With SHOW: what there is after the whole text"),
        ]
    ]

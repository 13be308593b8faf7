"""The lower half of aggregates of windows, which edges run: partial aggregates of panes, sent by cuts."""

from __future__ import annotations

from tamis.operators.windows.cut_policy import FULL_EVERY
from tamis.plan.model import PartialAggregation, Plan, StreamPlan, TopicPlan
from tamis.planning.explanations.transfer import rows_text
from tamis.planning.link.bound import MINUTE, entries_of_pane, most_cuts, most_open_panes
from tamis.planning.plan_trees.operators import PlanBound, PlanOperator
from tamis.planning.plan_trees.words import detail


def partial_aggregates(
    plan: Plan, stream: StreamPlan, topic: TopicPlan, sent: PartialAggregation, scan: PlanOperator
) -> PlanOperator:
    """The operator that aggregates the readings of a scan for a topic."""
    cuts = most_cuts(sent.grids, stream.delay)
    every = (
        f"at most {cuts} cuts a minute, besides those for late readings and for memory; one in"
        f" {FULL_EVERY // MINUTE} minutes has all readings"
    )
    panes = most_open_panes(sent.grids, stream.delay)
    entries = entries_of_pane(plan, topic, sent)
    formula = f"{panes} (open panes) * {'entries of a pane' if entries is None else f'{entries} entries'}"
    return PlanOperator(
        "PartialAggregates",
        "edge",
        "",
        (("rows", rows_text(sent)), ("sent", every), *detail("topic", topic.name)),
        "a partial aggregate for each open pane and group, until a cut sends it",
        PlanBound(None if entries is None else panes * entries, "entries", formula),
        (scan,),
    )

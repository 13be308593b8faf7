"""The synopsis of a cover."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.expressions.nodes import Type
from tamis.operators.representatives.best import Best
from tamis.operators.representatives.inequations import Inequations
from tamis.operators.representatives.synopsis import Extremes, Synopsis
from tamis.plan.nodes import Cover


def synopsis_of(cover: Cover, types: Sequence[Type]) -> Synopsis:
    """An empty synopsis of tuples with columns of these types."""
    if cover.most != 1:
        return Best(cover, types)
    return (Inequations if cover.unequal else Extremes)(cover, types)

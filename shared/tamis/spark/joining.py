"""`tamis.spark.temporal_join`: join of two DataFrames by key and time, with a condition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from tamis.errors import InputError
from tamis.expressions.nodes import Column, Expr, Type, substitute
from tamis.offline.omit import Span, duration
from tamis.plan.model import Definition, Input, TimeBound
from tamis.query.condition import read_condition
from tamis.spark.columns import in_utc
from tamis.spark.frames import (
    check_column,
    check_frame,
    check_key,
    check_state_store,
    check_text,
    check_time,
    column,
    condition_type,
    groups_of,
    key_of,
    lag_of,
    rate_of,
)
from tamis.spark.group_processor import GROUP, packed, stepped, unpacked, with_group
from tamis.spark.pair_join import ALIASES, JoinedInput, PairJoin


def temporal_join(
    left: DataFrame,
    right: DataFrame,
    interval: Span,
    *,
    key: str | Sequence[str],
    time: str = "ts",
    right_time: str | None = None,
    condition: str | None = None,
    left_rate: str | None = None,
    right_rate: str | None = None,
    groups: int | None = None,
    metrics: str = "tamis_temporal_join",
) -> DataFrame:
    """The pairs of rows with equal keys whose times differ by at most the interval, and that meet a
    condition.

    `key`: columns that both have. `time`: the columns of timestamps; `right_time`: that of `right`, if it has
    another name. The result has the key, then the other columns of `left` and of `right`; a name that both
    have becomes `left_NAME` and `right_NAME`. `condition`: SQL of Tamis over the columns of the result. A
    number that isn't finite is NULL in it. Rows without a key or a time don't join.

    Both are static, or both are streams with watermarks; results of `retain` are streams with a watermark,
    too. A pair is given out when its later row arrives. A late row is joined with the rows that are still in
    the state. `groups` must not change as long as a checkpoint is used. `metrics`: the name of the observed
    metrics; `held` is the number of rows in the state. With rates of both, such as `'10/s'` for ten rows of a
    key in any second, `bound` is the proven greatest number of them.

    Raises InputError, which names the column, and SqlErrors for mistakes in the condition.
    """
    frames = (left, right)
    for df, where in zip(frames, ALIASES, strict=True):
        check_frame(df, where)
    if left.isStreaming != right.isStreaming:
        static = "right" if left.isStreaming else "left"
        raise InputError(
            "is static, and the other one is a stream",
            where=static,
            hint="join a static frame with DataFrame.join, or read it as a stream",
        )
    if condition is not None:
        check_text(condition, "condition")
    names = key_of(key)
    times = (time, time if right_time is None else right_time)
    for df, where, one in zip(frames, ALIASES, times, strict=True):
        check_time(df, one, where)
        check_key(df, names, where)
    _check_same_types(left, right, names)
    span = duration(interval, "interval")
    shown = _shown_names(left, right, names)
    types = [
        tuple(
            (result, kind)
            for name, result in pairs
            if (kind := condition_type(check_column(df, name, where))) is not None
        )
        for df, where, pairs in zip(frames, ALIASES, shown, strict=True)
    ]
    inputs = [
        JoinedInput(
            time=one,
            names=pairs,
            types=kinds,
            rate=rate_of(rate, f"{where}_rate"),
            lag=lag_of(df, one, where) if df.isStreaming else 0,
        )
        for df, where, one, pairs, kinds, rate in zip(
            frames, ALIASES, times, shown, types, (left_rate, right_rate), strict=True
        )
    ]
    rule = PairJoin(
        definition_of(span, names, times, None if condition is None else condition_of(condition, types)),
        names,
        (inputs[0], inputs[1]),
    )
    fields = [
        StructField(result, df.schema[name].dataType, df.schema[name].nullable)
        for df, pairs in zip(frames, shown, strict=True)
        for name, result in pairs
    ]
    check_text(metrics, "metrics")
    number = groups_of(groups, left)
    return _run(left, right, rule, StructType(fields), groups=number, metrics=metrics)


def _run(
    left: DataFrame, right: DataFrame, rule: PairJoin, schema: StructType, *, groups: int, metrics: str
) -> DataFrame:
    if left.isStreaming:
        check_state_store(left)
        sides = [packed(df, rule.key, groups, side) for side, df in enumerate((left, right))]
        return unpacked(stepped(sides[0].unionAll(sides[1]), rule, groups, metrics), schema)
    # As other columns to Spark: of a frame that is joined with itself, it would leave out those of one side.
    right = right.select(*(column(name).alias(name) for name in right.columns))
    grouped = [with_group(df, rule.key, groups).groupBy(GROUP) for df in (left, right)]

    def joined(one: pa.Table, other: pa.Table) -> pa.Table:
        return rule.joined(in_utc(one.drop_columns([GROUP])), in_utc(other.drop_columns([GROUP])))

    return grouped[0].cogroup(grouped[1]).applyInArrow(joined, schema)


def _check_same_types(left: DataFrame, right: DataFrame, key: Sequence[str]) -> None:
    """Equal numbers of different types are in different groups."""
    for name in key:
        kinds = [df.schema[name].dataType.simpleString() for df in (left, right)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"the type is {kinds[0]} on the left and {kinds[1]} on the right",
                where=f"key, column {name}",
                hint="cast one of them",
            )


def _shown_names(
    left: DataFrame, right: DataFrame, key: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """For each input its columns in the result, each with its name there. Raises InputError if two get the
    same name.
    """
    both = set(left.columns) & set(right.columns)
    shown = [
        [(name, f"{alias}_{name}" if name in both else name) for name in df.columns if name not in key]
        for alias, df in zip(ALIASES, (left, right), strict=True)
    ]
    first = [(name, name) for name in key]
    results = [result for _, result in (*first, *shown[0], *shown[1])]
    twice = next((one for one in results if results.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"two columns {twice} in the result", hint="rename a column of one frame")
    return (*first, *shown[0]), tuple(shown[1])


def condition_of(condition: str, types: Sequence[Sequence[tuple[str, Type]]]) -> Expr:
    """The condition over the columns of both inputs; `types` are those that it can read, for each input.
    Raises SqlErrors.
    """
    alias_of = {result: alias for alias, kinds in zip(ALIASES, types, strict=True) for result, _ in kinds}
    read = read_condition(condition, {name: kind for kinds in types for name, kind in kinds})
    return substitute(read, lambda one: Column(alias_of[one.name], one.name, one.type))


def definition_of(
    span: int, key: tuple[str, ...], times: tuple[str, str], condition: Expr | None
) -> Definition:
    """The join as the joiner has it."""
    return Definition(
        alert="temporal_join",
        version=1,
        inputs=tuple(
            Input(
                alias=alias,
                stream=alias,
                topic=alias,
                time=one,
                partition_key=key,
                filter=None,
                interval=0,
            )
            for alias, one in zip(ALIASES, times, strict=True)
        ),
        equalities=(),
        bounds=(TimeBound("left", "right", -span, span),),
        condition=condition,
        select=(),
    )

"""`tamis.spark.temporal_join` in Spark, static and streaming, against Spark's own join of all readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.integration.spark.streams import Runs, Source, split
from tests.integration.spark.test_retain import disordered, last, readings

import tamis
from tamis.spark import retain, temporal_join

SPAN = 5
JOIN: dict[str, Any] = {"key": ["k", "room"], "condition": "v >= w + 3"}


def right_of(rows: pa.Table) -> pa.Table:
    """The readings with other names of columns, as those of the other input."""
    return rows.rename_columns(["k", "room", "at", "w", "n"])


def plain_join(left: DataFrame, right: DataFrame) -> list[tuple[int, int]]:
    """The numbers of the readings of all pairs, by Spark's own join."""
    x, y = left.alias("x"), right.alias("y")
    apart = F.abs(F.unix_micros("x.ts") - F.unix_micros("y.at"))
    keys = (F.col("x.k") == F.col("y.k")) & (F.col("x.room") == F.col("y.room"))
    pairs = x.join(y, keys & (apart <= SPAN * 1_000_000) & (F.col("x.v") >= F.col("y.w") + 3))
    return sorted((row[0], row[1]) for row in pairs.select("x.n", "y.n").collect())


def pairs(df: DataFrame) -> list[tuple[int, int]]:
    """The numbers of the readings of the pairs of a result."""
    return sorted((row.left_n, row.right_n) for row in df.where("left_n >= 0 AND right_n >= 0").collect())


def joined(left: DataFrame, right: DataFrame, **more: Any) -> DataFrame:
    """The join under test."""
    return temporal_join(left, right, f"{SPAN}s", right_time="at", **JOIN, **more)


def test_of_static_frames_it_gives_the_pairs_of_a_plain_join(spark: SparkSession) -> None:
    left, right = spark.createDataFrame(readings(11)), spark.createDataFrame(right_of(readings(12)))
    wanted = plain_join(left, right)
    assert len(wanted) > 100
    for groups in (None, 1, 5):
        found = joined(left, right, groups=groups)
        assert found.columns == ["k", "room", "ts", "v", "left_n", "at", "w", "right_n"]
        assert pairs(found) == wanted
    row = joined(left, right).first()
    assert row is not None and row.v >= row.w + 3 and abs((row.ts - row.at).total_seconds()) <= SPAN


def sources(spark: SparkSession, tmp_path: Path) -> tuple[pa.Table, pa.Table, Source, Source, int]:
    """Two streams, and the number of their files, of which the last one ends them."""
    left, right = readings(13, 200), readings(14, 200)
    made = []
    for name, rows in (("left", left), ("right", right)):
        source = Source(tmp_path / name, spark, spark.createDataFrame(rows).schema)
        made.append(source)
    return left, right, made[0], made[1], 4


def of_right(df: DataFrame) -> DataFrame:
    """The stream with other names of columns."""
    return df.withColumnRenamed("ts", "at").withColumnRenamed("v", "w")


def parts(rows: pa.Table) -> list[pa.Table]:
    """The readings in files, out of order, and a last one."""
    return [*split(disordered(rows, 15), [90, 120]), last(rows)]


def test_of_streams_it_gives_the_pairs_of_a_plain_join(spark: SparkSession, tmp_path: Path) -> None:
    """Out of order, and with a restart from the checkpoint after each batch."""
    left, right, first, second, files = sources(spark, tmp_path)
    runs = Runs(spark, tmp_path)
    for number in range(files):
        first.put(number, parts(left)[number])
        second.put(number, parts(right)[number])
        query = joined(
            first.stream(), of_right(second.stream()), groups=3, left_rate="12/s", right_rate="12/s"
        )
        runs.run(query, "tamis_temporal_join")
    wanted = plain_join(spark.createDataFrame(left), spark.createDataFrame(right_of(right)))
    assert pairs(runs.rows()) == wanted and len(wanted) > 50
    assert sum(one["late"] for one in runs.metrics) == 0
    with_rows = [one for one in runs.metrics if one["groups"]]
    assert all(0 < one["held"] <= one["bound"] and not one["groups_above_bound"] for one in with_rows)


def test_retained_streams_can_be_joined_in_the_same_query(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of `retain` come up to the interval behind the watermark, and all find their partners."""
    left, right, first, second, files = sources(spark, tmp_path)
    runs = Runs(spark, tmp_path)
    interval, key = f"{2 * SPAN}s", ["k", "room"]
    for number in range(files):
        first.put(number, parts(left)[number])
        second.put(number, parts(right)[number])
        high = retain(first.stream(), interval, value="v", key=key, sides="above", groups=2, metrics="high")
        low = retain(second.stream(), interval, value="v", key=key, sides="below", groups=2, metrics="low")
        runs.run(joined(high, of_right(low), groups=2), "tamis_temporal_join")
    kept = (
        tamis.omit(left, interval, value="v", key=key, sides="above"),
        tamis.omit(right, interval, value="v", key=key, sides="below"),
    )
    by_number = [dict(zip(rows["n"].to_pylist(), rows.to_pylist(), strict=True)) for rows in (left, right)]

    def shown(found: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
        """Pairs without numbers: of equal readings, any may be retained."""
        names = ("k", "room", "ts", "v")
        return sorted(
            (tuple(by_number[0][x][name] for name in names) + tuple(by_number[1][y][name] for name in names))
            for x, y in found
        )

    raised = pairs(runs.rows())
    wanted = plain_join(spark.createDataFrame(kept[0]), spark.createDataFrame(right_of(kept[1])))
    assert shown(raised) == shown(wanted)
    assert sum(one["late"] for one in runs.metrics) == 0
    alarms = plain_join(spark.createDataFrame(left), spark.createDataFrame(right_of(right)))
    assert 0 < len(raised) < len(alarms)
    for x, y in alarms:
        assert any(
            by_number[0][x]["k"] == by_number[0][a]["k"]
            and abs((by_number[0][x]["ts"] - by_number[0][a]["ts"]).total_seconds()) <= 2 * SPAN
            and abs((by_number[1][y]["ts"] - by_number[1][b]["ts"]).total_seconds()) <= 2 * SPAN
            for a, b in raised
        )


def test_a_frame_can_be_joined_with_itself(spark: SparkSession) -> None:
    rows = spark.createDataFrame(readings(15, 60))
    found = temporal_join(rows, rows, "0s", key=["k", "room", "n"])
    assert found.columns == ["k", "room", "n", "left_ts", "left_v", "right_ts", "right_v"]
    assert found.count() == rows.where("room IS NOT NULL").count()


def test_wrong_arguments_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    left, right = spark.createDataFrame(readings(1, 4)), spark.createDataFrame(right_of(readings(1, 4)))
    stream = spark.readStream.schema(right.schema).parquet(str(tmp_path))
    cases: list[tuple[tuple[DataFrame, DataFrame], dict[str, Any], str]] = [
        ((left, left), {"right_time": "at"}, r"^right: no column at; "),
        (
            (left.withColumnRenamed("n", "n.n"), right),
            {},
            r"^left: a dot is in the name of column n\.n; rename it$",
        ),
        ((left, right), {"condition": F.lit(True)}, "^condition: Column is no text; give text$"),
        ((left, right), {"right_rate": 3}, "^right_rate: 3 is no rate; write text such as '10/s'$"),
        ((left, right), {"key": "v"}, r"^left, column v: values of type double can't be a key"),
        (
            (left, right.withColumn("room", F.col("room").cast("long"))),
            {},
            r"^key, column room: the type is int on the left and bigint on the right; cast one of them$",
        ),
        (
            (left.withColumn("left_n", F.lit(1)), right),
            {},
            "^two columns left_n in the result; rename a column of one frame$",
        ),
        (
            (left, stream),
            {},
            "^left: is static, and the other one is a stream; join a static frame with DataFrame.join, or",
        ),
    ]
    for (first, second), arguments, message in cases:
        with pytest.raises(tamis.InputError, match=message):
            temporal_join(first, second, "5s", **{**JOIN, "right_time": "at", **arguments})
    with pytest.raises(tamis.SqlErrors, match="there is no column 'u'"):
        temporal_join(left, right, "5s", right_time="at", key=["k", "room"], condition="v > u")

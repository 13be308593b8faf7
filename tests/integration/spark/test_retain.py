"""`tamis.spark.retain` in Spark, static and streaming, against `tamis.omit` of all readings."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.integration.spark.conftest import ROCKSDB, STATE_STORE
from tests.integration.spark.streams import Runs, Source, split
from tests.oracle.random_cases import SEED

import tamis
from tamis.spark import retain

START = 1_700_000_000
RULE: dict[str, Any] = {"value": "v", "key": ["k", "room"], "sides": "above"}


def readings(seed: int, rows: int = 400) -> pa.Table:
    """Readings of three sensors in order of their times, with ties, gaps and equal values."""
    r = np.random.default_rng((SEED, seed))
    times = START + np.cumsum(r.choice([0, 0, 0, 1, 1, 30], rows, p=[0.2, 0.2, 0.2, 0.2, 0.19, 0.01]))
    return pa.table(
        {
            "k": pa.array(r.choice(["a", "b"], rows)),
            "room": pa.array([None if one else 1 for one in r.random(rows) < 0.3], pa.int32()),
            "ts": pa.array(times * 1_000_000, pa.timestamp("us", "UTC")),
            "v": pa.array(r.integers(0, 6, rows), pa.float64()),
            "n": pa.array(range(rows), pa.int64()),
        }
    )


def disordered(rows: pa.Table, seconds: int) -> pa.Table:
    """The readings in an order of arrival in which none comes later than this."""
    r = np.random.default_rng((SEED, 5))
    times = rows["ts"].cast(pa.int64()).to_numpy() // 1_000_000
    return rows.take(pa.array(np.argsort(times + r.integers(0, seconds + 1, len(rows)), kind="stable")))


def last(rows: pa.Table) -> pa.Table:
    """A reading an hour later, whose watermark decides all others."""
    after = pd.Timestamp(rows["ts"][-1].as_py()) + timedelta(hours=1)
    one = {"k": ["end"], "room": [9], "ts": [after], "v": [0.0], "n": [-1]}
    return pa.table(one, schema=rows.schema)


def shown(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows without their numbers: of equal readings, any may be retained."""
    found = (tuple(one[name] for name in ("k", "room", "ts", "v")) for one in rows.to_pylist())
    return sorted(found, key=repr)


def table(df: DataFrame) -> pa.Table:
    """The rows of a DataFrame, with times in UTC."""
    rows = df.toArrow()
    return rows.set_column(2, "ts", rows["ts"].cast(pa.timestamp("us", "UTC")))


def test_of_a_static_frame_it_retains_what_omit_retains(spark: SparkSession) -> None:
    rows = readings(1)
    for ties in ("fewest", "strict"):
        for groups in (None, 1, 7):
            rule = {**RULE, "ties": ties}
            kept = retain(spark.createDataFrame(rows), "10s", groups=groups, **rule)
            assert shown(table(kept)) == shown(tamis.omit(rows, "10s", **rule))
    delayed = retain(spark.createDataFrame(rows), timedelta(seconds=10), max_delay="3s", **RULE)
    assert shown(table(delayed)) == shown(tamis.omit(rows, "10s", max_delay="3s", **RULE))


def test_all_columns_stay_as_they_are(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [
            (Decimal("1.5"), date(2024, 1, 1), [1, None], {"a": 1}, b"x", 3, "2024-01-01 00:00:00"),
            (Decimal("0.5"), None, [], {}, b"", 1, "2024-01-01 00:00:01"),
            (Decimal("1.5"), date(2024, 1, 2), None, None, None, 3, "2024-01-01 00:00:02"),
        ],
        "`share` decimal(10,2), day date, list array<int>, map map<string,int>, blob binary, n int, s string",
    )
    df = df.withColumn("when", F.col("s").cast("timestamp_ntz")).withColumn(
        "times", F.array(F.struct(F.col("s").cast("timestamp").alias("ts")))
    )
    for value in ("share", "n"):
        kept = retain(df, "10s", value=value, time="when", sides="above")
        assert kept.schema == df.schema
        assert sorted(kept.collect(), key=repr) == sorted(df.where("n > 1").collect(), key=repr)


def test_of_a_stream_it_retains_what_omit_retains(spark: SparkSession, tmp_path: Path) -> None:
    """In whatever batches, out of order, and with a restart from the checkpoint after each batch."""
    rows = readings(2)
    source = Source(tmp_path / "in", spark, spark.createDataFrame(rows).schema)
    arrived = disordered(rows, 15)
    runs = Runs(spark, tmp_path)
    for number, part in enumerate([*split(arrived, [3, 150, 151]), last(rows)]):
        source.put(number, part)
        kept = retain(source.stream(), "10s", groups=3, rate="12/s", **RULE)
        assert kept.isStreaming and kept.columns == rows.column_names
        runs.run(kept, "tamis_retain")
        if number == 1:  # all timestamps of the state then have another type
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    wanted = tamis.omit(rows, "10s", **RULE)
    assert shown(table(runs.rows().where("n >= 0"))) == shown(wanted)
    assert 10 < len(wanted) < len(rows)
    assert sum(one["taken"] for one in runs.metrics) == len(rows) + 1
    assert sum(one["given"] for one in runs.metrics) == len(wanted)
    assert sum(one["late"] for one in runs.metrics) == 0
    with_rows = [one for one in runs.metrics if one["groups"]]
    assert all(one["groups"] <= 3 for one in with_rows)  # none is called twice in a batch
    assert all(0 < one["held"] <= one["bound"] and not one["groups_above_bound"] for one in with_rows)


def test_late_rows_are_given_out_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    rows = readings(3, 40)
    source = Source(tmp_path / "in", spark, spark.createDataFrame(rows).schema)
    late = rows.slice(0, 5).set_column(4, "n", pa.array(range(100, 105), pa.int64()))
    runs = Runs(spark, tmp_path)
    for number, part in enumerate([rows, last(rows), late]):
        source.put(number, part)
        runs.run(retain(source.stream(), "10s", **RULE), "tamis_retain")
    assert sorted(row.n for row in runs.rows().where("n >= 100").collect()) == list(range(100, 105))
    assert sum(one["late"] for one in runs.metrics) == 5


def test_a_checkpoint_is_for_one_rule(spark: SparkSession, tmp_path: Path) -> None:
    rows = readings(4, 40)
    source = Source(tmp_path / "in", spark, spark.createDataFrame(rows).schema)
    runs = Runs(spark, tmp_path)
    source.put(0, rows)
    runs.run(retain(source.stream(), "10s", groups=1, **RULE), "tamis_retain")
    source.put(1, rows)
    with pytest.raises(
        StreamingQueryException, match="checkpoint was made with groups=1, and this query has"
    ):
        runs.run(retain(source.stream(), "10s", groups=2, **{**RULE, "key": ()}), "tamis_retain")
    with pytest.raises(StreamingQueryException, match=r"the checkpoint was made with 'retain 10000000 v ts"):
        runs.run(retain(source.stream(), "11s", groups=1, **RULE), "tamis_retain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": "w"}, "df: no column w; it has k, room, ts, v, n"),
        (
            {"value": "k"},
            "df, column k: values of type string can't be compared as numbers of type double; cast it to "
            "double",
        ),
        (
            {"time": "v"},
            "df, column v: the type is double, and event times are timestamps; cast it to timestamp",
        ),
        ({"key": None}, "key: None is no key; give a name, or a list of names"),
        (
            {"key": "v"},
            "df, column v: values of type double can't be a key; make a column of text or whole numbers of "
            "it",
        ),
        ({"interval": 10}, "interval: 10 has no unit, but the times are dates; write 10s or 10ms"),
        ({"sides": "up"}, "sides: 'up' is unknown; give one of 'above', 'below', 'both'"),
        ({"rate": 10}, "rate: 10 is no rate; write text such as '10/s'"),
        ({"metrics": 1}, "metrics: int is no text; give text"),
        ({"groups": 0}, "groups: 0 is no number of groups; give 1 or more"),
        (
            {"df": [1]},
            "df: builtins.list is no DataFrame of PySpark; give a DataFrame of PySpark; tamis.omit takes "
            "other frames",
        ),
    ],
)
def test_wrong_arguments_are_refused(spark: SparkSession, arguments: dict[str, Any], message: str) -> None:
    given = {"df": spark.createDataFrame(readings(1, 4)), "interval": "10s", **RULE, **arguments}
    with pytest.raises(tamis.InputError) as caught:
        retain(**given)
    assert str(caught.value) == message


def test_what_a_stream_needs_is_said(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(tmp_path, spark, spark.createDataFrame(readings(1, 4)).schema)
    stream = source.stream()
    plain = spark.readStream.schema(source.schema).parquet(str(tmp_path))
    with pytest.raises(
        tamis.InputError, match=r"^df: column ts of the stream has no watermark; call withWaterm"
    ):
        retain(plain, "10s", **RULE)
    with pytest.raises(
        tamis.InputError, match=r"^max_delay: it is for static frames; leave it out: the waterm"
    ):
        retain(stream, "10s", max_delay="3s", **RULE)
    with pytest.raises(tamis.InputError, match=r"^ties: it is for static frames"):
        retain(stream, "10s", ties="strict", **RULE)
    spark.conf.unset(STATE_STORE)
    spark.conf.set(STATE_STORE, "org.example.Other")
    with pytest.raises(
        tamis.InputError, match=r"streams need RocksDB as the state store, and it is org\.example"
    ):
        retain(stream, "10s", **RULE)
    spark.conf.set(STATE_STORE, ROCKSDB)

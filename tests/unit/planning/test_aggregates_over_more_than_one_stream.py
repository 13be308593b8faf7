"""Plans and states of aggregates over windows of a stream that is joined with tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import RefusedError
from tamis.evaluation.standing.compilation import standing_evaluator
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.planning.standing_queries import judged
from tamis.query.parse import catalog_of

_ROWS = "station,region,target\np,north,1.5\nq,south,2\n"


def _sql(directory: Path, by: str) -> str:
    (directory / "sites.csv").write_text(_ROWS)
    return f"""
        CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts);
        CREATE TABLE sites (station VARCHAR, region VARCHAR, target DOUBLE)
          WITH (path = '{directory / "sites.csv"}');
        CREATE ALERT above AS SELECT {by}, window_end, avg(a.temp - s.target) AS above
        FROM TUMBLE(air, ts, INTERVAL '10 us') a JOIN sites s ON a.station = s.station
        GROUP BY {by}, window_end;
    """


@pytest.mark.parametrize(
    ("by", "partition", "key"),
    [
        ("a.station", ("station",), "station"),
        ("s.station", ("station",), "station"),
        ("s.region", (), "region"),
    ],
)
def test_partitions(tmp_path: Path, by: str, partition: tuple[str, ...], key: str) -> None:
    catalog = catalog_of(_sql(tmp_path, by))
    layout = judged(catalog.alerts["above"], catalog).layout
    (feed,) = layout.feeds
    assert (feed.partition_key, layout.key) == (partition, (key,))
    assert {*feed.partition_key, *feed.read} == {"station", "temp"}


def test_a_state_belongs_to_the_rows_of_the_table(tmp_path: Path) -> None:
    sql = _sql(tmp_path, "s.region")
    query = standing_evaluator(sql, "above")
    batch = {
        "station": Vector.from_list(["p", "q", "x"], Type.VARCHAR),
        "ts": Vector.from_list([1, 2, 3], Type.TIMESTAMP),
        "temp": Vector.from_list([2.0, 4.0, 9.0], Type.DOUBLE),
    }
    query.take("air", batch, 3)
    again = standing_evaluator(sql, "above")
    again.load(query.dump())
    assert again.entries() == 2
    rows = again.advance("air", 10)
    assert [rows.columns[name].to_list() for name in ("region", "above")] == [["north", "south"], [0.5, 2.0]]
    (tmp_path / "sites.csv").write_text(_ROWS.replace("1.5", "1.25"))
    with pytest.raises(RefusedError, match="another query"):
        standing_evaluator(sql, "above").load(query.dump())

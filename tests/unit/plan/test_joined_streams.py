"""Streams that join other streams: explained, run, applied and dropped; they have no topic.

tests/oracle/operators/standing/test_joined_streams.py compares their rows with DuckDB's.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from tests.unit.registry.test_standing import say, started

from tamis.cli import main
from tamis.errors import RefusedError, TamisError
from tamis.plan.nodes import streams_of
from tamis_registry.core.leases import new_lease
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.streams import stream_documents

SQL = """
CREATE STREAM bids (item INT KEY, price BIGINT);
CREATE STREAM asks (item INT KEY, price BIGINT);
CREATE STREAM both AS
  SELECT b.item, b.price AS bid, a.price AS ask FROM bids b JOIN asks a ON a.item = b.item;
CREATE STREAM tight AS SELECT item, bid FROM both WHERE ask - bid <= 1;
CREATE ALERT crossed AS SELECT DISTINCT item FROM both WHERE ask <= bid AND item BETWEEN 1 AND 3;
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    (tmp_path / "bids.csv").write_text("item,price\n1,5\n2,7\n9,9\n")
    (tmp_path / "asks.csv").write_text("item,price\n1,6\n2,7\n2,9\n9,1\n")


def _tamis(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_explain_decides_what_reads_it() -> None:
    code, out, _ = _tamis("explain", "q.sql", "--json")
    both, tight, crossed = orjson.loads(out)["queries"]
    assert code == 0
    assert both["memory"]["theorem"] == tight["memory"]["theorem"] == "inlined where it is read"
    assert (crossed["accepted"], crossed["memory"]["bound"]) == (True, 9)
    assert [(one["alias"], one["stream"]) for one in crossed["streams"]] == [
        ("both.b", "bids"),
        ("both.a", "asks"),
    ]


def test_run_evaluates_what_reads_it_and_itself_where_it_is_bounded() -> None:
    inputs = ("--input", "bids=bids.csv", "--input", "asks=asks.csv")
    assert _tamis("run", "q.sql", "--query", "crossed", *inputs) == (0, "item\n2\n", "")
    code, _, said = _tamis("run", "q.sql", "--query", "both", *inputs)
    assert code == 1
    assert "SELECT shows b.item, which has no limits" in said
    limits = " AND b.item BETWEEN 1 AND 2 AND b.price BETWEEN 0 AND 9 AND a.price BETWEEN 0 AND 9;"
    Path("q.sql").write_text(SQL.replace("ON a.item = b.item;", f"ON a.item = b.item{limits}"))
    assert _tamis("run", "q.sql", "--query", "tight", *inputs) == (0, "item,bid\n1,5\n2,7\n", "")


def test_a_recording_of_it_is_told() -> None:
    code, _, said = _tamis("run", "q.sql", "--query", "crossed", "--input", "both=bids.csv")
    assert code == 2
    assert "stream both is made from streams bids and asks by a query, and is not recorded" in said


def test_a_fleet_runs_what_reads_it_and_has_no_topic_for_it() -> None:
    registry = started()
    say(registry, SQL)
    (query,) = registry.plan.standing
    assert {source.stream for source in query.inputs} == {"bids", "asks"}
    assert query.node is not None
    assert streams_of(query.node) == ("bids", "asks")
    assert [len(stream.topics) for stream in registry.plan.streams] == [1, 1]
    with pytest.raises(RefusedError, match="'both' is a join, and has no topic of its own"):
        new_lease("both", "", "me", 60, registry.state.catalog)
    with pytest.raises(TamisError, match="'bids' is read by stream 'both', stream 'tight', alert 'crossed'"):
        say(registry, "DROP STREAM bids;")
    again = started(recover(records(registry.state)))
    assert [one["name"] for one in stream_documents(again.view(0))] == ["bids", "asks", "both", "tight"]
    assert [one.alert for one in again.plan.standing] == ["crossed"]
    say(again, "DROP ALERT crossed; DROP STREAM tight; DROP STREAM both; DROP STREAM asks;")

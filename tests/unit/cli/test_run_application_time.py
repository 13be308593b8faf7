"""`tamis explain`, `tamis run` and `tamis verify` for queries in application time."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

SQL = """
CREATE TABLE sites (id INT, name VARCHAR) WITH (path = 'sites.csv');
CREATE STREAM doors (site INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE STREAM alarms (site INT, level INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM rules (level INT);
CREATE ALERT named AS SELECT a.level, s.name FROM alarms a JOIN sites s ON a.site = s.id;
CREATE ALERT opened AS SELECT a.level, a.ts FROM alarms a, doors d
  WHERE a.ts > d.ts AND a.site = d.site AND d.site IN (1, 2);
CREATE ALERT once AS SELECT DISTINCT a.site FROM alarms a, doors d
  WHERE a.ts > d.ts AND a.site = d.site AND d.site IN (1, 2);
CREATE ALERT ruled AS SELECT a.site FROM alarms a JOIN rules r ON a.level = r.level
  WHERE r.level < 3 AND r.level > 0 AND a.site IN (1, 2);
CREATE ALERT either AS SELECT site FROM alarms WHERE site = 1
  UNION SELECT site FROM doors WHERE site IN (1, 2);
CREATE ALERT grows AS SELECT d.ts FROM alarms a, doors d WHERE a.ts > d.ts AND a.site = 1;
CREATE ALERT kept WITH (allow_unbounded = true) AS
  SELECT DISTINCT d.ts FROM alarms a, doors d WHERE a.ts > d.ts;
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(SQL)
    (tmp_path / "sites.csv").write_text("id,name\n1,north\n1,gate\n2,south\n")
    times = [f"2026-01-01T00:00:0{second}Z" for second in range(9)]
    doors = [(1, 3), (2, 1), (1, 1), (3, 0), (1, 8)]
    alarms = [(1, 7, 2), (1, 2, 3), (2, 1, 4), (1, 9, 4), (3, 1, 5)]
    (tmp_path / "doors.csv").write_text("site,ts\n" + "".join(f"{s},{times[t]}\n" for s, t in doors))
    (tmp_path / "alarms.csv").write_text(
        "site,level,ts\n" + "".join(f"{s},{v},{times[t]}\n" for s, v, t in alarms)
    )
    (tmp_path / "rules.csv").write_text("level\n1\n2\n1\n7\n")


def _run(query: str, *streams: str) -> tuple[int, str, str]:
    inputs = [part for one in streams for part in ("--input", f"{one}={one}.csv")]
    found = CliRunner().invoke(main, ["run", "q.sql", "--query", query, *inputs])
    return found.exit_code, found.stdout, found.stderr


def test_a_table_is_joined_as_it_is() -> None:
    code, out, said = _run("named", "alarms")
    assert (code, said) == (0, "")
    assert out == "level,name\n7,north\n7,gate\n2,north\n2,gate\n1,south\n9,north\n9,gate\n"


def test_a_join_without_a_bound_on_time_runs_where_its_memory_is_bounded() -> None:
    code, out, _ = _run("opened", "alarms", "doors")
    assert code == 0
    assert out == (
        "level,ts\n7,2026-01-01T00:00:02Z\n2,2026-01-01T00:00:03Z\n1,2026-01-01T00:00:04Z\n"
        "9,2026-01-01T00:00:04Z\n9,2026-01-01T00:00:04Z\n"
    )


def test_distinct_gives_each_row_once() -> None:
    assert _run("once", "alarms", "doors") == (0, "site\n1\n2\n", "")


def test_a_stream_without_time_beside_one_with() -> None:
    assert _run("ruled", "alarms", "rules") == (0, "site\n1\n2\n2\n", "")


def test_a_union_of_streams_with_time() -> None:
    assert _run("either", "alarms", "doors") == (0, "site\n2\n1\n", "")


def test_what_is_not_bounded_is_refused() -> None:
    code, out, said = _run("grows", "alarms", "doors")
    assert (code, out) == (1, "")
    assert "nothing bounds the time between the tuples of a and d" in said


def test_what_may_grow_runs() -> None:
    code, out, _ = _run("kept", "alarms", "doors")
    assert code == 0
    assert len(out.splitlines()) == 4


def test_a_recording_of_a_table_is_told() -> None:
    code, _, said = _run("named", "alarms", "sites")
    assert code == 2
    assert "sites is a table, whose rows are read from sites.csv" in said


def test_explain_says_the_bound_and_what_a_table_is() -> None:
    found = CliRunner().invoke(main, ["explain", "q.sql", "--query", "named", "--verbose"])
    assert found.exit_code == 0
    assert "sites as s: a table: it is read as it is" in found.stdout
    assert "3 (rows) entries of s" in found.stdout


def test_verify_compares_all_rows() -> None:
    head, *statements = SQL.split("CREATE ALERT ")
    accepted = [one for one in statements if not one.startswith("grows")]
    Path("q.sql").write_text("CREATE ALERT ".join([head, *accepted]))
    inputs = [part for one in ("alarms", "doors", "rules") for part in ("--input", f"{one}={one}.csv")]
    done = CliRunner().invoke(main, ["verify", "q.sql", *inputs, "--json"])
    found = orjson.loads(done.stdout)
    assert done.exit_code == 0
    assert [(one["query"], one["tuples"], one["reference_alarms"], one["alarms"]) for one in found] == [
        ("named", 8, 7, 7),
        ("opened", 10, 5, 5),
        ("once", 10, 2, 2),
        ("ruled", 9, 3, 3),
        ("either", 10, 2, 2),
        ("kept", 10, 3, 3),
    ]
    assert all(one["missed"] == one["extra"] == 0 for one in found)


def test_the_example_of_an_unbounded_query_is_run() -> None:
    query = "CREATE ALERT all_sites AS SELECT DISTINCT site FROM doors;"
    Path("u.sql").write_text(SQL.split("CREATE ALERT", maxsplit=1)[0] + query)
    found = CliRunner().invoke(main, ["explain", "u.sql", "--witness"])
    assert found.exit_code == 1
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["3", "8", "3"] in lines
    assert ["1024", "-", "1024"] in lines

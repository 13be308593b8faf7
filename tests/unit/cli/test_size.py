"""`tamis size`: text, JSON, and errors that name the option."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from tamis.cli import main

FIRST = Path(__file__).resolve().parents[3] / "demo" / "first"
FILE = str(FIRST / "alerts.sql")
BASES = {"proven", "measured", "given", "declared", "computed", "assumed"}


def size(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["size", *arguments])


def test_json_has_every_part_and_says_where_each_number_comes_from() -> None:
    result = size(FILE, "--rate", "AIR=100/s", "--keys", "air=50", "--retained", "air=10%", "--json")
    assert result.exit_code == 0, result.output
    found = orjson.loads(result.output)
    assert found.keys() == {"parts", "notes", "costs_measured_on"}
    parts = {(one["part"], one["name"]): one["figures"] for one in found["parts"]}
    assert [part for part, _ in parts] == [
        *("stream", "stream", "edge", "state of topic", "state of topic", "joiner", "registry", "alerts"),
        *("topic", "topic", "topic", "Kafka"),
    ]
    for part in parts.values():
        for figure in part.values():
            assert figure.keys() == {"value", "unit", "basis", "source"}
            assert figure["basis"] in BASES and figure["source"] and figure["value"] >= 0
    assert parts["stream", "air"]["readings"]["value"] == 100
    assert parts["stream", "air"]["keys"] == {
        "value": 50,
        "unit": "count",
        "basis": "given",
        "source": "--keys",
    }
    assert parts["topic", "tamis.stream.air.1"]["published"]["value"] == 10
    assert parts["topic", "tamis.stream.surface.1"]["retained"]["basis"] == "assumed"


def test_text_has_a_line_for_each_number() -> None:
    result = size(FILE, "--outage", "2h", "--replication", "1", "--edges", "4")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any(line.split()[:2] == ["spool", "7.74"] or line.startswith("  spool") for line in lines)
    assert any("outage of 7200 s" in line for line in lines)
    assert any(line.split()[:2] == ["replication", "1"] for line in lines)
    assert any("bound" in line and "proven" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--rate", "wind=1/s"],
            "--rate wind=1/s: there is no stream 'wind'; the file has air, surface",
        ),
        (["--rate", "air=100"], "--rate air=100: '100' isn't a rate; write a whole number, a slash and a"),
        (["--rate", "air=100/fortnight"], "'100/fortnight' isn't a rate: 'fortnight' isn't a duration"),
        (
            ["--rate", "air=5/s", "--rate", "air=6/s"],
            "--rate air=6/s: the stream 'air' has a value already; give one value",
        ),
        (["--rate", "100/s"], "--rate: '100/s' has no stream and value; write --rate air=100/s"),
        (["--keys", "air=many"], "--keys air=many: 'many' isn't a number of keys"),
        (["--keys", f"air={'9' * 400}"], "isn't a number of keys; write a whole number up to 10^12"),
        (["--edges", "9" * 400], "Invalid value for '--edges'"),
        (["--partitions", "9" * 400], "Invalid value for '--partitions'"),
        (["--replication", "9" * 400], "Invalid value for '--replication'"),
        (["--retained", "air=0.1"], "--retained air=0.1: '0.1' isn't a share; write a percentage"),
        (["--retained", "air=110%"], "--retained air=110%: '110%' isn't a share"),
        (["--retention", "7"], "--retention 7: '7' has no unit"),
        (["--outage", "0s"], "--outage 0s: '0s' isn't a positive duration"),
        (["--input", "wind=x.csv"], "there is no stream 'wind'"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_write(arguments: list[str], message: str) -> None:
    result = size(FILE, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split()), result.output


def test_a_stream_without_any_rate_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "all.sql"
    file.write_text(
        "CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE ALERT q AS SELECT ts FROM air WHERE v > 1;"
    )
    result = size(str(file))
    assert result.exit_code == 2
    assert "nothing says how many readings of stream air come" in result.output
    assert "add --rate air=100/s" in result.output
    assert size(str(file), "--rate", "air=100/s").exit_code == 0


def test_a_refused_query_has_no_size(tmp_path: Path) -> None:
    file = tmp_path / "all.sql"
    file.write_text(
        "CREATE STREAM bids (item INT, price BIGINT) WITH (rate = '1/s');"
        "CREATE STREAM asks (item INT, price BIGINT) WITH (rate = '1/s');"
        "CREATE ALERT crossed AS SELECT b.item FROM bids b, asks a WHERE a.price <= b.price;"
    )
    result = size(str(file))
    assert result.exit_code == 1
    assert "crossed" in result.output


SIMILAR = """
CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, WATERMARK FOR ts AS ts);
CREATE PATTERN fault VALUES (0, 1, 4, 1, 0);
CREATE ALERT one AS SELECT machine, scale(value, 'fault') AS s FROM vib WHERE similar(value, 'fault', 0.5);
CREATE ALERT two AS SELECT machine FROM vib WHERE similar(value, 'fault', 0.25) AND value > 3;
"""


def test_watched_streams_are_sized_as_one_stream(tmp_path: Path) -> None:
    file, recording = tmp_path / "a.sql", tmp_path / "vib.csv"
    file.write_text(SIMILAR)
    values = [0, 0, 1, 4, 1, 0, 0, 7, 9, 15, 9, 7, 7]
    rows = [f"m,{place * 1_000_000},{value}" for place, value in enumerate(values)]
    recording.write_text("\n".join(["machine,ts,value", *rows, ""]))
    given = (str(file), "--rate", "vib=100/s", "--keys", "vib=50", "--input", f"vib={recording}", "--json")
    result = size(*given)
    assert result.exit_code == 0, result.output
    found = orjson.loads(result.output)
    parts = {(one["part"], one["name"]): one["figures"] for one in found["parts"]}
    assert [name for part, name in parts if part == "stream"] == ["vib"]
    assert parts["edge", None]["readings each"]["value"] == 100
    published = [one["published"]["value"] for (part, _), one in parts.items() if "published" in one]
    # One window is the pattern itself, and one is twice as large.
    assert sorted(published) == [pytest.approx(100 * share / 13, rel=1e-3) for share in (1, 2)]
    note = "stream vib: the time for comparing readings with patterns is not part of the edge's cores"
    assert found["notes"].count(note) == 1
    assert size(*given[:-3], "--input", f"vib_similar_0={recording}").exit_code == 2


def test_the_readings_of_window_functions_are_part_of_the_memory(tmp_path: Path) -> None:
    stream = "CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, WATERMARK FOR ts AS ts);"
    over = "OVER (PARTITION BY machine ORDER BY ts RANGE INTERVAL '{} seconds' PRECEDING)"
    memory = {}
    for seconds in (100, 300):
        file = tmp_path / "a.sql"
        window = f"max(value) {over.format(seconds)}"
        file.write_text(f"{stream} CREATE ALERT q AS SELECT machine FROM vib QUALIFY {window} > 3;")
        result = size(str(file), "--rate", "vib=1000/s", "--keys", "vib=50", "--json")
        assert result.exit_code == 0, result.output
        found = orjson.loads(result.output)
        parts = {(one["part"], one["name"]): one["figures"] for one in found["parts"]}
        memory[seconds] = parts["edge", None]["memory"]["value"]
        assert "stream vib: the time for window functions is not part of the edge's cores" in found["notes"]
    # 20 readings a second of each key, with value, time, two places and the mark of NULL.
    assert memory[300] - memory[100] == pytest.approx(50 * 20 * 200 * 33)

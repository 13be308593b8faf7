"""`tamis plot`: marks in the terminal, pictures in files, and mistakes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tamis.cli import main
from tamis.offline.retained_series import RetainedSeries, shown_keys
from tamis.offline.terminal_plot import terminal_plot

FIRST = Path(__file__).resolve().parents[3] / "demo" / "first"
ARGUMENTS = ["plot", str(FIRST / "alerts.sql"), "--input", f"air={FIRST / 'air.csv'}", "--value"]


def series(keys: list[tuple[object, ...]], kept: list[bool]) -> RetainedSeries:
    """Readings a second apart whose marks are in different cells: each is higher than the one before."""
    count = len(keys)
    times = np.datetime64("2026-03-01T08:30:00", "us") + np.arange(count).astype("timedelta64[s]")
    return RetainedSeries(times, np.arange(count, dtype=np.float64), np.array(kept), keys, "ts", "temp")


def plot_area(text: str) -> str:
    """What is drawn between the axes."""
    lines = [line for line in text.splitlines() if line.endswith("│")]
    return "".join(line.rstrip("│").partition("┤" if "┤" in line else "│")[2] for line in lines)


def test_each_reading_has_its_mark_in_the_terminal() -> None:
    kept = [True, False, True, True, False, False, True, False]
    text = terminal_plot(series([("a",)] * 8, kept), 60, 20, color=False)
    assert Counter(plot_area(text).replace(" ", "")) == {"●": 4, "×": 4}
    lines = text.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 60
    assert "4 of 8 readings retained (●), others omitted (×)" in lines[0]
    assert "ts from 2026-03-01T08:30:00Z to 2026-03-01T08:30:07Z" in text
    assert lines[-1].lstrip().removeprefix("kept").split() == list("█_██__█_")


def test_keys_are_letters_without_colors_and_colors_otherwise() -> None:
    keys: list[tuple[object, ...]] = [("a",), ("b",), ("a",), ("b",), ("b",)]
    shown = series(keys, [True, True, False, True, False])
    text = terminal_plot(shown, 60, 16, color=False)
    assert Counter(plot_area(text).replace(" ", "")) == {"A": 2, "B": 1, "×": 2}
    assert text.splitlines()[-1] == "A b  B a" and "\x1b" not in text
    colored = terminal_plot(shown, 60, 16, color=True)
    assert "\x1b[38;5;12m●\x1b[0m b  \x1b[38;5;9m●\x1b[0m a" in colored


@pytest.mark.parametrize("count", [0, 1])
def test_few_readings_and_null_can_be_drawn(count: int) -> None:
    one = series([("a",)] * count, [True] * count)
    title = f"{count} of {count} readings retained"
    assert title in terminal_plot(one, 60, 12, color=False)
    null = RetainedSeries(one.times, np.full_like(one.values, np.nan), one.kept, one.keys, "ts", "temp")
    assert title in terminal_plot(null, 60, 12, color=False)


def test_keys_with_the_most_readings_are_shown() -> None:
    keys: list[tuple[object, ...]] = [(key,) for key in range(9) for _ in range(key + 1)]
    shown, title = shown_keys(series(keys, [True] * 45))
    assert [one.label for one in shown] == ["8", "7", "6", "5", "4", "3"]
    assert title == "39 of 39 readings retained (o), others omitted (x), 6 of 9 keys"


@pytest.mark.parametrize(("name", "head"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")])
def test_the_picture_is_of_its_format(tmp_path: Path, name: str, head: bytes) -> None:
    done = CliRunner().invoke(main, [*ARGUMENTS, "temp", "-o", str(tmp_path / name)])
    assert (done.exit_code, done.output) == (0, "")
    data = (tmp_path / name).read_bytes()
    assert data.startswith(head)
    assert b"readings retained" in data or name != "p.svg"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tmp"], "--value: stream air has no number 'tmp'; did you mean 'temp'?"),
        (["temp", "--stream", "surfac"], "--stream: there is no recording of stream 'surfac'"),
        (["temp", "-o", "p.gif"], "p.gif: the format can't be determined from the name; end the name in one"),
        (["temp", "-o", "/nowhere/p.png"], "/nowhere/p.png: can't be written: No such file or directory"),
    ],
)
def test_mistakes_have_exit_code_2(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(main, [*ARGUMENTS, *arguments])
    assert done.exit_code == 2 and f"Error: {message}" in done.stderr


@pytest.mark.parametrize(("package", "more"), [("plotext", []), ("matplotlib.figure", ["-o", "-"])])
def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str, more: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "tamis.offline.terminal_plot", raising=False)
    done = CliRunner().invoke(main, [*ARGUMENTS, "temp", *more])
    assert done.exit_code == 2
    name = package.partition(".")[0]
    assert f"the Python package '{name}' is not installed" in done.stderr
    assert "tamis[tools,plots]" in done.stderr


WINDOWS = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, rh DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE ALERT warm AS SELECT station, window_end, max(temp) FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
  WHERE temp > 28 GROUP BY station, window_end;
"""


def test_partial_aggregates_are_named_with_their_rows_between_boundaries_of_panes(tmp_path: Path) -> None:
    file = tmp_path / "windows.sql"
    file.write_text(WINDOWS)
    arguments = ["plot", str(file), *ARGUMENTS[2:], "temp"]
    text = CliRunner().invoke(main, arguments).stdout
    rows = {line.split(",")[0] + line.split(",")[1][:16] for line in passing()}
    assert f"{len(passing())} of 320 readings in partial aggregates (●), others omitted (×)" in text
    sent = f"sent to Kafka: {len(rows)} rows of partial aggregates in"
    assert text.splitlines()[-1].startswith(sent)
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "p.svg")])
    assert done.exit_code == 0
    picture = (tmp_path / "p.svg").read_text()
    assert sent in picture
    # From 03:14 to 03:26.
    assert picture.count("stroke: #d9d9d9") == 13


def passing() -> list[str]:
    """The readings that pass the filter of the alert, as lines of the recording."""
    lines = (FIRST / "air.csv").read_text().splitlines()[1:]
    return [line for line in lines if float(line.split(",")[2]) > 28]

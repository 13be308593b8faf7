"""A quick benchmark gives the figures that a long one gives, and keeps them with the machine's facts."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import benchmarks.__main__
import benchmarks.plots
import orjson
import pytest
from benchmarks import absence, windows
from benchmarks.__main__ import NAMES
from benchmarks.bounded import deciding
from benchmarks.constraints import operations, projection
from benchmarks.harness import Cell, Goal, Result, keep, machine, median_of, show_goals
from benchmarks.latency import quantile
from benchmarks.omission import growth, retention, stores
from benchmarks.pages import fill
from benchmarks.predicates import evaluation, relaxing
from benchmarks.scale import limits, queues, reckoned
from benchmarks.similarity import watching
from click.testing import CliRunner
from rich.console import Console

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def test_stores_retain_the_same_and_the_figures_are_kept(tmp_path: Path) -> None:
    said: list[str] = []
    result = stores.run(True, said.append)
    assert len(result.rows) == 4 and len(said) == 5
    for row in result.rows:
        costs = [row[name] for name in ("kernel", "stream form", *(store.name for store in stores.STORES))]
        assert all(isinstance(cost, float) and cost > 0 for cost in costs)
        # In order both forms decide the same.
        if row["sigma"] == 0:
            assert row["retained"] == row["retained by stream form"]
    document = orjson.loads(keep(result, machine(), 1.0, tmp_path).read_bytes())
    assert document["machine"]["cores"] > 0
    assert document["rows"] == list(result.rows)


@pytest.mark.parametrize("options", [[], ["--write-docs"]], ids=["alone", "--write-docs"])
def test_only_an_option_writes_into_the_documentation(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with real sizes, which small ones replace here."""
    pages = tmp_path / "docs/benchmarks"
    shutil.copytree(BENCHMARKS.parent / "docs/benchmarks", pages)
    before = {path: path.read_bytes() for path in pages.iterdir() if path.is_file()}
    for module in (benchmarks.__main__, benchmarks.plots):
        monkeypatch.setattr(module, "PAGES", pages)
    monkeypatch.setattr(benchmarks.__main__, "RESULTS", tmp_path / "results")
    run = retention.run
    monkeypatch.setattr(retention, "run", lambda _, say: run(True, say))
    done = CliRunner().invoke(benchmarks.__main__.main, ["omission.retention", *options])
    assert done.exit_code == 0, done.output
    changed = {path.name for path, old in before.items() if path.read_bytes() != old}
    assert changed == ({"omission.md", "omission-retention.png"} if options else set())
    assert (tmp_path / "results/omission.retention.json").exists()


def test_small_sizes_are_no_figures_for_the_documentation() -> None:
    done = CliRunner().invoke(benchmarks.__main__.main, ["omission.retention", "--quick", "--write-docs"])
    assert done.exit_code == 2 and "--quick" in done.output


def test_retention_is_what_the_theory_expects() -> None:
    result = retention.run(True, lambda _: None)
    expected = {("independent", 16): 4.0, ("independent", 256): 4.0, ("Gamma-Wiener", 16): 8.0}
    for row in result.rows:
        strict, fewest = row["per interval, strict"], row["per interval, fewest"]
        assert isinstance(strict, float) and isinstance(fewest, float) and fewest <= strict
        design = expected.pop((str(row["stream"]), int(row["tuples per interval"] or 0)), None)
        assert design is None or design / 1.25 < fewest < 1.25 * design
    assert not expected


def test_growth_has_both_forms_retain_the_same() -> None:
    """The benchmark itself compares them; what the stream form keeps grows with the keys, not the tuples."""
    kept = {(row["tuples"], row["keys"]): row["kept per key"] for row in growth.run(True, print).rows}
    assert kept and all(
        isinstance(number, float) and number < 2 * growth.INTERVAL for number in kept.values()
    )


def test_relaxing_keeps_exact_predicates_small() -> None:
    rows = {row["method"]: row for row in relaxing.run(True, lambda _: None).rows}
    assert rows["HSR"]["pD"] == rows["EM"]["pD"] == rows["HSR+QC"]["pD"]
    assert float(rows["HCR"]["pD"] or 0) >= float(rows["EM"]["pD"] or 0) > 0
    counts = [int(rows[name]["matched pairs"] or 0) for name in ("HSR", "HCR", "HSR+QC", "EM")]
    assert counts == sorted(counts) and counts[0] == 0 < counts[1] <= counts[3]


def test_evaluation_finds_the_same_every_way() -> None:
    """The benchmark itself compares them."""
    for row in evaluation.run(True, lambda _: None).rows:
        assert all(float(row[f"{way}, M items/s"] or 0) > 0 for way in evaluation.WAYS)


def test_tables_go_between_the_marks_of_pages(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a.b -->\nold\n<!-- end of a.b -->\nafter\n<!-- a -->\n<!-- end of a -->\n")
    result = Result("a.b", "A", ("what", "how much"), [{"what": "x", "how much": 1234}], {}, ("a note",))
    fill(tmp_path, result, machine())
    text = page.read_text()
    assert "| x | 1,234 |" in text and "- a note" in text and "old" not in text
    assert text.startswith("before\n") and text.endswith("after\n<!-- a -->\n<!-- end of a -->\n")
    fill(tmp_path, result, machine())
    assert page.read_text().count("| x | 1,234 |") == 1


def test_goals_go_into_their_table_and_those_of_other_benchmarks_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- goals of b a -->\n\nold\n\n<!-- end of goals -->\n")
    slow, fast = Goal("p50", 1.6, "times b's", most=1.3, spread=(1.5, 1.7)), Goal("rate", 6.5, "", least=6)
    for name, goals in [("a", [slow, slow]), ("b", [fast]), ("c", [fast]), ("a", [slow])]:
        fill(tmp_path, Result(name, "A", ("what",), [], {}, (), goals), machine())
    head, line, *rows = page.read_text().splitlines()[2:-2]
    assert (head, line) == (
        "| benchmark | what | figure | goal | beside | met |",
        "|---|---|---|---|---|---|",
    )
    assert rows == [
        "| b | rate | 6.5 | at least 6 |  | yes |",
        "| a | p50 | 1.6 (1.5 to 1.7) | at most 1.3 | times b's | no |",
    ]


def test_each_benchmark_is_a_file_and_explained() -> None:
    page = (BENCHMARKS / "README.md").read_text()
    for name in NAMES:
        assert (BENCHMARKS / f"{name.replace('.', '/')}.py").exists()
        assert f"`{name}`" in page


def test_quantile_is_linear_within_its_bucket() -> None:
    buckets = {0.1: 0.0, 0.2: 50.0, 0.5: 100.0, float("inf"): 100.0}
    assert quantile(buckets, 0.25) == pytest.approx(0.15)
    assert quantile(buckets, 0.75) == pytest.approx(0.35)
    # All that is known of what lies beyond the last bound is that bound.
    assert quantile({0.5: 1.0, float("inf"): 100.0}, 0.99) == 0.5


def test_deciding_takes_milliseconds() -> None:
    """The benchmark itself compares the verdicts with what the queries were made to be."""
    for row in deciding.run(True, lambda _: None).rows:
        assert 0 < float(row["check, ms"] or 0) < 1000


def test_projections_and_operations_of_constraints_agree_with_the_slow_ways() -> None:
    """The benchmarks themselves compare the results."""
    for row in (*projection.run(True, lambda _: None).rows, *operations.run(True, lambda _: None).rows):
        assert isinstance(row["ratio"], float) and row["ratio"] > 0


def test_absence_has_the_rows_of_duckdb() -> None:
    """The benchmark itself compares how many; only a part of the tuples is needed."""
    for row in absence.run(True, lambda _: None).rows:
        assert isinstance(row["retained, %"], float) and 0 < row["retained, %"] < 100
        assert isinstance(row["rows"], int) and row["rows"] > 0


def test_similarity_finds_the_matches_of_libraries() -> None:
    """The benchmark itself compares how many."""
    for row in watching.run(True, lambda _: None).rows:
        assert isinstance(row["matches"], int) and row["matches"] > 0
        assert isinstance(row["Tamis : BLAS"], float) and row["Tamis : BLAS"] > 0


def test_windows_have_the_rows_of_duckdb() -> None:
    """The benchmark itself compares how many; what is kept doesn't grow with the tuples."""
    for row in windows.run(True, lambda _: None).rows:
        assert isinstance(row["most entries"], int) and row["most entries"] > 0
        assert isinstance(row["ratio"], float) and row["ratio"] > 0


def test_goals_of_all_results_are_in_one_table() -> None:
    rate = Goal("rate", 1.44, "times the loop's", least=1.5)
    memory = Goal("memory", 119.6, "MB", most=120)
    results = [Result(name, "", (), (), {}, goals=(goal,)) for name, goal in (("a", rate), ("b", memory))]
    console = Console(record=True, width=100, file=StringIO())
    show_goals([Result("c", "", (), (), {}), *results], console)
    rows = [line.split("  ") for line in console.export_text().splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["rate", "1.44", "at least 1.5", "times the loop's", "no"] in cells
    assert ["memory", "120", "at most 120", "MB", "yes"] in cells


def test_rounds_give_medians_with_the_least_and_the_greatest_figure() -> None:
    def result(rate: int, ratio: float) -> Result:
        goals = (Goal("ratio", ratio, "times the loop's", least=1.5),)
        rows: list[dict[str, Cell]] = [{"what": "edge", "rate": rate, "ratio": ratio, "published": "11%"}]
        return Result("a", "A", ("what", "rate", "ratio", "published"), rows, {}, ("a note",), goals)

    rounds = [result(100, 1.5), result(300, 1.25), result(200, 1.75)]
    found = median_of(rounds)
    assert found.rows == [{"what": "edge", "rate": 200, "ratio": 1.5, "published": "11%"}]
    assert found.goals[0].figure == 1.5 and found.goals[0].spread == (1.25, 1.75)
    assert found.notes[0] == "a note" and "3 runs" in found.notes[1]
    assert median_of(rounds[:1]) is rounds[0]


def test_simulated_queues_are_as_their_formulas_say() -> None:
    result = queues.run(True, lambda _: None)
    assert len(result.goals) == len(result.rows) == 12
    assert not [goal for goal in result.goals if not goal.met]


def test_progress_is_what_breaks_first_with_an_edge_for_each_machine() -> None:
    rows = reckoned.run(True, lambda _: None).rows
    needs = {row["what"]: [float(cell or 0) for cell in list(row.values())[1:]] for row in rows}
    machine, rarely, site, shipped = needs["brokers for bytes"]
    assert machine > shipped > rarely >= site > 0
    assert needs["cores of the joiner for tuples"][0] * 10 < needs["cores of the joiner for tuples"][3]
    found = limits.run(True, lambda _: None).rows
    edges = [float(row["reached at"] or 0) for row in found if row["unit"] == "edges"]
    # Progress that is 34 times as rare allows 34 times as many edges.
    assert edges[2] == pytest.approx(edges[1] * reckoned.RARE * reckoned.Installation().progress)

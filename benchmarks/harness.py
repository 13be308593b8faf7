"""Harness of all benchmarks: figures, facts about the machine, tables and JSON files."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from tamis.java.runtime import find_java

# Packages whose version affects the figures.
_PACKAGES = (
    "tamis",
    "confluent-kafka",
    "numba",
    "numpy",
    "orjson",
    "pyarrow",
    "pyspark",
    "rtree",
    "faust-streaming",
    "sortedcontainers",
)

GOAL_COLUMNS = ("what", "figure", "goal", "beside", "met")

# A run is not repeated after this many seconds in all.
BUDGET = 8.0

T = TypeVar("T")
Cell = str | int | float | None
Say = Callable[[str], None]
"""Reports progress to the user."""


@dataclass(frozen=True)
class Goal:
    """A figure of a run and its limit: `least` at least, or `most` at most; one of the two is given. `peer`:
    what the figure was measured beside, with its unit.
    """

    what: str
    figure: float
    peer: str
    least: float | None = None
    most: float | None = None
    # The least and the greatest figure of several rounds, of which `figure` is the median.
    spread: tuple[float, float] | None = None

    @property
    def met(self) -> bool:
        """True if the figure is as it should be."""
        return (self.least is None or self.figure >= self.least) and (
            self.most is None or self.figure <= self.most
        )


@dataclass(frozen=True)
class Result:
    """The figures of one run. `rows` are the lines of the table by `columns`; `notes` explain them. `publish`
    writes what the repository keeps of them besides tables: plots, pages and other files.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[dict[str, Cell]]
    settings: dict[str, Cell]
    notes: Sequence[str] = ()
    goals: Sequence[Goal] = ()
    publish: Callable[[], None] | None = None

    def row(self, first: str) -> dict[str, Cell]:
        """The row whose first cell is `first`."""
        return next(row for row in self.rows if row[self.columns[0]] == first)


def median_of(rounds: Sequence[Result]) -> Result:
    """The result of several runs of one benchmark: medians of all numbers in the table and of all figures of
    goals. Texts are those of the first run.
    """
    first = rounds[0]
    if len(rounds) == 1:
        return first
    rows = [_median_row([one.rows[number] for one in rounds]) for number in range(len(first.rows))]
    goals = []
    for number, goal in enumerate(first.goals):
        figures = [one.goals[number].figure for one in rounds]
        goals.append(replace(goal, figure=median(figures), spread=(min(figures), max(figures))))
    note = f"each number is the median of {len(rounds)} runs of the benchmark, one after the other"
    settings = {**first.settings, "rounds": len(rounds)}
    return replace(first, rows=rows, goals=goals, settings=settings, notes=(*first.notes, note))


def _median_row(rows: Sequence[dict[str, Cell]]) -> dict[str, Cell]:
    """Medians of the numbers of a row. Counts stay whole, so that they are shown with all digits."""
    found: dict[str, Cell] = {}
    for name, cell in rows[0].items():
        numbers = [one for row in rows if isinstance(one := row.get(name), int | float)]
        whole = isinstance(cell, int)
        found[name] = (round(median(numbers)) if whole else median(numbers)) if numbers else cell
    return found


@dataclass
class Watch:
    """Wall-clock seconds between start and end."""

    seconds: float = field(default=0.0)


@contextmanager
def timed() -> Iterator[Watch]:
    """Measure the body of a `with` statement."""
    watch = Watch()
    began = time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - began


def best(work: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The minimum of the seconds of several runs of `work`, without the first one, and its result. On a
    shared machine the minimum is the least disturbed run. Long runs are repeated less often.
    """
    work()
    found: list[float] = []
    while not found or (len(found) < repeats and sum(found) < BUDGET):
        with timed() as watch:
            result = work()
        found.append(watch.seconds)
    return min(found), result


def medians(works: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, tuple[float, T]]:
    """The median CPU seconds of the runs of each of `works` on one core, and their last results.

    The works run in turn, so that a disturbance of the machine affects all of them and their ratios hold. A
    work that takes longer than the budget runs once. Kernels must have been compiled before.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    results: dict[str, T] = {}
    for _ in range(repeats):
        for name, work in works.items():
            if max(found[name], default=0.0) < BUDGET:
                began = time.process_time()
                results[name] = work()
                found[name].append(time.process_time() - began)
    return {name: (median(found[name]), results[name]) for name in works}


def machine() -> dict[str, Any]:
    """Facts about the machine, which figures depend on. `load` is the load of the last minute, with all other
    processes.
    """
    java = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True).stderr
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "java": java.splitlines()[0],
        "versions": {name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """The name of the processor, if the system has it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def keep(result: Result, facts: dict[str, Any], seconds: float, directory: Path) -> Path:
    """Write the figures as `<name>.json`; returns the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.name}.json"
    figures = {name: value for name, value in asdict(result).items() if name != "publish"}
    document = {"machine": facts, "seconds": round(seconds, 1), **figures}
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return path


def show(result: Result, console: Console) -> None:
    """Print the figures as a table, and the notes below it."""
    table = Table(box=box.SIMPLE_HEAD, title=result.title)
    for number, name in enumerate(result.columns):
        table.add_column(name, justify="right" if number else "left")
    for row in result.rows:
        table.add_row(*(text(row.get(name)) for name in result.columns))
    console.print(table)
    for note in result.notes:
        console.print(f"  {note}", highlight=False)


def show_goals(results: Sequence[Result], console: Console) -> None:
    """Print the goals of all results in one table."""
    table = Table(*GOAL_COLUMNS, box=box.SIMPLE_HEAD, title="Goals")
    for goal in (goal for result in results for goal in result.goals):
        table.add_row(*goal_cells(goal))
    if table.row_count:
        console.print(table)


def goal_cells(goal: Goal) -> tuple[str, str, str, str, str]:
    """The texts of GOAL_COLUMNS."""
    wanted = f"at least {text(goal.least)}" if goal.least is not None else f"at most {text(goal.most)}"
    figure = text(goal.figure)
    if goal.spread is not None:
        figure += f" ({text(goal.spread[0])} to {text(goal.spread[1])})"
    return goal.what, figure, wanted, goal.peer, "yes" if goal.met else "no"


def text(cell: Cell) -> str:
    """The text of a cell: three significant digits, with thousands separators."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:,.3g}"
    return f"{cell:,}" if isinstance(cell, int) else cell

"""Answers of explain, plan, run and verify to a statement: results, or refusals with a place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from tests.oracle.language.pairs.templates import COLUMNS

from tamis.errors import SqlErrors, TamisError
from tamis.offline.explain import asked_queries, explained
from tamis.offline.recordings import read_recordings
from tamis.offline.run import rows_of, runnable
from tamis.offline.statements import parsed
from tamis.offline.verify import verify
from tamis.offline.wording import COMMAND
from tamis.planning.build import first_plan
from tamis.query.model import AlertDef, Catalog, DerivedDef, Statement
from tamis.recordings.typed import Recording, read_recording

FILE = "pairs.sql"
STEPS = ("parse", "explain", "plan", "run", "verify")
_ROWS = 24


@dataclass
class Answers:
    """The steps that gave a result, the refusals of the others, and the difference that verify has found."""

    done: list[str] = field(default_factory=list)
    refusals: list[TamisError] = field(default_factory=list)
    rows: int = 0
    difference: str | None = None


def write_files(directory: Path) -> None:
    """Recordings of all streams, the table and a pattern, with NULLs and equal times."""
    r = random.Random(1)
    for name in ("one", "two", "timeless", "r"):
        lines = [",".join(COLUMNS)]
        second = 0
        for _ in range(_ROWS if name != "r" else 6):
            second += r.choice((0, 1, 1, 2, 5))
            at = r.choice((second - 3, second + 1))
            values = (
                r.choice(("k1", "k2")),
                f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z",
                r.choice(("", "0.5", "1.5", "2", "2", "7.25", "40")),
                r.choice(("", "1", "2", "3", "3")),
                r.choice(("", "1", "9007199254740993", "-4")),
                r.choice(("", "v", "w", "Va!", "z")),
                r.choice(("", "true", "false", "true")),
                f"2026-01-01T00:{max(0, at) // 60:02}:{max(0, at) % 60:02}Z",
            )
            lines.append(",".join(values))
        (directory / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (directory / "dip.csv").write_text(
        "ts,x\n" + "".join(f"{i},{v}\n" for i, v in enumerate((0, -1, -4, -1, 0)))
    )


def answers(sql: str, directory: Path) -> Answers:
    """The answers to a text. Anything but an error of Tamis is raised."""
    found = Answers()
    read = _Answering(sql, directory, found)
    for step in STEPS:
        try:
            getattr(read, step)()
        except TamisError as error:
            check_refusal(error, sql)
            found.refusals.append(error)
            if step == "parse":
                break
        else:
            found.done.append(step)
    return found


def check_refusal(error: TamisError, sql: str) -> None:
    """Fail if a refusal says nothing, or has no place: a line and a column of the text, or the name of what
    is refused.
    """
    lines = sql.split("\n")
    if isinstance(error, SqlErrors):
        assert error.errors
        for one in error.errors:
            assert one.what and one.hint and one.position is not None, one
            assert 1 <= one.position.line <= len(lines), one
            assert 1 <= one.position.column <= len(lines[one.position.line - 1]) + 1, one
    else:
        assert error.what and error.where, error


@dataclass
class _Answering:
    """The steps of one text; a step raises what a command would."""

    sql: str
    directory: Path
    found: Answers
    catalog: Catalog = field(default_factory=Catalog)
    statements: list[Statement] = field(default_factory=list)

    def parse(self) -> None:
        """Parse the text."""
        self.catalog, self.statements = parsed(self.sql, FILE, _ignore)

    def explain(self) -> None:
        """Explain each query as text and as JSON, with its example and what edges drop of the recordings."""
        asked = asked_queries(self.catalog, self.statements, None, FILE)
        asked = [one for one in asked if isinstance(one, AlertDef)]
        recordings = self._recordings(asked)
        explanation = explained(asked, self.catalog, self.statements, recordings, witness=True)
        assert orjson.loads(orjson.dumps(explanation.document())) and explanation.text(verbose=True)

    def plan(self) -> None:
        """Plan all queries, as the registry does."""
        first_plan(self.catalog)

    def run(self) -> None:
        """Run the alert over the recordings."""
        if "q" in self.catalog.alerts:
            chosen = runnable(self.catalog.alerts["q"])
            recordings = self._recordings([chosen])
            self.found.rows = len(rows_of(chosen, self.catalog, recordings, wording=COMMAND, notify=_ignore))

    def verify(self) -> None:
        """Compare the alert's rows with DuckDB's."""
        if "q" in self.catalog.alerts:
            recordings = self._recordings([self.catalog.alerts["q"]])
            (verdict,) = verify(self.catalog, recordings)
            self.found.difference = None if verdict.same else str(verdict)

    def _recordings(self, chosen: Sequence[AlertDef | DerivedDef]) -> dict[str, Recording]:
        files = {name: [str(self.directory / f"{name}.csv")] for name in self.catalog.raw_streams}
        return read_recordings(
            self.catalog,
            chosen,
            files,
            lambda stream, paths: read_recording(stream, paths, None, None),
            wording=COMMAND,
            notify=_ignore,
        )


def _ignore(notice: str) -> None:
    """Leave out notices, which are no answers."""

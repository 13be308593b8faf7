"""Golden plans: for each kind of query, `tests/fixtures/plans` has its SQL and below a line its plan as text.

`python -m tests.unit.planning.plan_samples` writes the plans again.
"""

from __future__ import annotations

import os
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tamis.offline.explain import Plans, asked_queries, planned
from tamis.offline.statements import parsed

FOLDER = Path(__file__).parents[2] / "fixtures" / "plans"
SAMPLES = sorted(FOLDER.glob("*.txt"))
_LINE = "----\n"
_SITES = "k,height\na,90\nb,110\nc,120\n"


def sample(file: Path) -> tuple[str, str]:
    """The SQL and the plan of a sample."""
    sql, _, plan = file.read_text().partition(_LINE)
    return sql, plan


def plans_of(sql: str, name: str | None = None) -> Plans:
    """The plans of all queries of a text over the streams of the samples, or of the one of this name."""
    with TemporaryDirectory() as folder, chdir(folder):
        Path("sites.csv").write_text(_SITES)
        catalog, statements = parsed((FOLDER / "streams.sql").read_text() + sql, None, print)
        return planned(asked_queries(catalog, statements, name, "the text"), catalog)


def main() -> None:
    """Write all plans again."""
    for file in SAMPLES:
        sql, _ = sample(file)
        file.write_text(f"{sql}{_LINE}{plans_of(sql).text()}\n")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()

"""Mistakes in SQL are reported with position and hint.

The cases are in tests/fixtures/sql/mistakes. A case has a title (`---- title`), SQL, and a line `--!
line:column text` for each expected mistake, in order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tamis.errors import SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of, parse

SQL = Path(__file__).parents[2] / "fixtures" / "sql"


def base() -> Catalog:
    """The catalogue that base.sql makes."""
    catalog = catalog_of((SQL / "base.sql").read_text(encoding="utf-8"))
    return catalog


def cases() -> list[tuple[str, str, list[str]]]:
    """Title, SQL and expected mistakes of every case."""
    found = []
    for file in sorted((SQL / "mistakes").glob("*.sql")):
        for block in re.split(r"^---- ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _, body = block.partition("\n")
            lines = body.splitlines()
            expected = [line[4:] for line in lines if line.startswith("--! ")]
            sql = "\n".join(line for line in lines if not line.startswith("--! "))
            found.append((f"{file.stem}: {title}", sql, expected))
    return found


CASES = cases()


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150
    assert len({title for title, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(("sql", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_mistakes(sql: str, expected: list[str]) -> None:
    catalog = base()
    with pytest.raises(SqlErrors) as raised:
        parse(sql, catalog)
    errors = raised.value.errors
    found = [f"{e.position.line}:{e.position.column} {e.what}" for e in errors if e.position]
    assert found == expected
    assert all(e.hint for e in errors)
    assert not any("<" in str(e) and "class" in str(e) for e in errors)
    assert catalog == base()

"""Words of the reference page docs/sql.md that name constructs: keywords, functions and options."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[4] / "docs" / "sql.md"
_OTHERS = ("elsewhere", "Flink SQL", "ksqlDB", "RisingWave")  # columns of tables about other systems
_WORD = re.compile(r"\b[A-Z][A-Z_]+\b|\b[a-z_0-9]+(?=\()|\b[a-z_]+(?= =>)")


def words(page: str) -> set[str]:
    """The words in the code of a page, in front of its comparison with other systems.

    >>> sorted(words("Write `SELECT round(x) FROM s`."))
    ['FROM', 'SELECT', 'round']
    """
    page = page.partition("\n## Other systems")[0]
    code = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    rest = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    header: list[str] | None = None
    options: set[str] = set()
    for line in rest.splitlines():
        cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]]
        header = (header or cells) if line.startswith("|") else None
        kept = [one for of, one in zip(header or (), cells, strict=False) if of not in _OTHERS] or [line]
        if header is not None and "option" in header[0]:
            options |= set(re.findall(r"`([a-z_]+)`", cells[0]))
        code += re.findall(r"`([^`]+)`", " ".join(kept))
    return options | {word for one in code for word in words_of(one)}


def words_of(sql: str) -> set[str]:
    """The words of a text of SQL, without its comments, texts and names in quotes."""
    plain = re.sub(r"--[^\n]*|'[^']*'|\"[^\"]*\"", "''", sql)
    return set(_WORD.findall(plain))

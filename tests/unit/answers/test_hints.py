"""Hints of answers are accepted when they are followed.

A hint that says what to write is put into the SQL of its case, in place of the part that it is about. The
query is then accepted. A word that was misspelt may have hidden another mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.answers.answer_cases import Case, cases

_PLACE = re.compile(r"(?:Error: )?alerts\.sql:(\d+):(\d+): ")
_END = r"(?=\s*(?:\bHAVING\b|\bQUALIFY\b|;|$))"


def _at(sql: str, line: str) -> int:
    """The offset of the place of a message."""
    place = _PLACE.match(line)
    assert place is not None, line
    lines = sql.split("\n")
    return sum(len(one) + 1 for one in lines[: int(place[1]) - 1]) + int(place[2]) - 1


def _over(sql: str, line: str, hint: re.Match[str]) -> str:
    at = _at(sql, line)
    start = sql.rfind(" OVER ", 0, at)
    if start < 0 or ")" in sql[start:at]:  # the place is the call in front of OVER
        start = sql.index(" OVER ", at)
    return sql[:start] + " " + re.sub(r"^ OVER \([^()]*\)", lambda _: hint[1], sql[start:], count=1)


def _meant(sql: str, line: str, hint: re.Match[str]) -> str:
    at = _at(sql, line)
    return sql[:at] + re.sub(r"^(\w+\.)?\w+", lambda old: (old[1] or "") + hint[1], sql[at:], count=1)


def _grouped(sql: str, line: str, hint: re.Match[str]) -> str:
    before, alert, select = sql.rpartition("CREATE ALERT")
    grouped, ends = re.subn(r"GROUP BY .*?" + _END, lambda _: hint[1], select, flags=re.DOTALL)
    if not ends:
        grouped = re.sub(_END, lambda _: f" {hint[1]}", select, count=1)
    return f"{before}{alert}{grouped}"


def _joined(sql: str, line: str, hint: re.Match[str]) -> str:
    sql = re.sub(r"\w+\([\w.]+\) FILTER \(.*?\) OVER \(.*?\)", lambda _: hint[1], sql)
    return re.sub(r"FROM [^;]*;\s*$", lambda _: f"{hint[2]};", sql)


def _bounded(sql: str, line: str, hint: re.Match[str]) -> str:
    return re.sub(r"(?= GROUP BY|;\s*$)", lambda _: f" {hint[1]}", sql, count=1)


def _whole(sql: str, line: str, hint: re.Match[str]) -> str:
    return f"{sql.partition('CREATE ALERT')[0]}CREATE ALERT q AS {hint[1]};"


RULES: dict[str, tuple[str, Callable[[str, str, re.Match[str]], str]]] = {
    "OVER": (r"; write (OVER \(.*\))$", _over),
    "another name": (r"; did you mean '(\w+)'\?", _meant),
    "GROUP BY": (r"; write (GROUP BY .*)$", _grouped),
    "a join": (r"; write ([\w.]+), with (FROM .*)$", _joined),
    "a condition": (r"would be bounded with: (AND .*?)$", _bounded),
    "a query": (r"; write (SELECT .*)$", _whole),
}


def _hints() -> list[tuple[str, Case, str, str]]:
    """The hints that can be followed: the rule, the case, the first line of the message, and the new SQL."""
    found = []
    for file, case in cases():
        for number, line in enumerate(case.answer):
            folded = line
            for more in case.answer[number + 1 :]:  # repairs are folded
                if not folded.lstrip().startswith("would be bounded") or not more.startswith(" " * 6):
                    break
                folded += " " + more.strip()
            for rule, (pattern, followed) in RULES.items():
                hint = re.search(pattern, folded)
                if hint is not None and ("would" in pattern or _PLACE.match(line)) and "…" not in hint[0]:
                    found.append(
                        (f"{rule}: {file}: {case.title}", case, folded, followed(case.sql, line, hint))
                    )
    return found


HINTS = _hints()


def test_hints_of_each_rule_are_followed() -> None:
    names = [name.partition(":")[0] for name, _, _, _ in HINTS]
    assert {rule for rule in RULES if names.count(rule) < 2} == set()


@pytest.mark.parametrize(("case", "line", "sql"), [one[1:] for one in HINTS], ids=[one[0] for one in HINTS])
def test_a_hint_is_accepted(case: Case, line: str, sql: str, tmp_path: Path) -> None:
    assert sql != case.sql, line
    answer = replace(case, sql=sql).answered(tmp_path)
    place = _PLACE.match(line)
    if "did you mean" in line and place is not None:  # a corrected word may show the next mistake
        assert not any(one.startswith(place[0]) for one in answer), "\n".join([sql, *answer])
    else:
        assert answer[0] == "exit 0", "\n".join([sql, *answer])

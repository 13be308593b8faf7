"""Aggregates of sessions: the rows are those of a simple loop over the tuples in order of event time.

The loop looks at one key at a time and knows nothing of tables. `tamis verify` finds the same sessions by
DuckDB. Batches are random, the state is dumped and loaded at random points, and the number of entries never
exceeds the bound.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.operators import compile_query, run_query
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.vectors import Vector
from tamis.operators import recording_runs
from tamis.operators.windows.sessions import SessionGroups
from tamis.planning.explain import explain
from tamis.query.model import Catalog, SessionGroupBy
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys

Tuple = tuple[int, str | None, int | None, float | None, bool | None]
Row = tuple[object, ...]

NAMES = ("ts", "k", "a", "x", "f")
_BEGINNING = -(2**60)
_END = 2**62


@dataclass(frozen=True)
class _Asked:
    """A random query over sessions: their key, gap and greatest length, and other columns of groups."""

    key: tuple[str, ...]
    gap: int
    greatest: int | None
    others: tuple[str, ...]
    condition: bool  # a > 0, in the subquery that the sessions read
    having: bool  # count(*) > 1
    delay: int
    catalog: Catalog

    def passes(self, one: Tuple) -> bool:
        a = one[2]
        return not self.condition or (a is not None and a > 0)

    def key_of(self, one: Tuple) -> Row:
        return tuple(one[NAMES.index(name)] for name in self.key)

    def rows(self, start: int, end: int, tuples: list[Tuple]) -> list[Row]:
        """The rows of one session."""
        groups: dict[Row, list[Tuple]] = {}
        for one in tuples:
            groups.setdefault(tuple(one[NAMES.index(n)] for n in (*self.key, *self.others)), []).append(one)
        return [
            (start, end, *group, *_aggregates(inside))
            for group, inside in groups.items()
            if not self.having or len(inside) > 1
        ]


def _aggregates(tuples: list[Tuple]) -> Row:
    """count(*), sum(x), max(a), median(x), count(DISTINCT a) and the last x."""
    values = sorted(one[3] for one in tuples if one[3] is not None)
    whole = [one[2] for one in tuples if one[2] is not None]
    timed = [(one[0], one[3]) for one in tuples if one[3] is not None]
    middle = len(values) // 2
    return (
        len(tuples),
        float(sum(map(Fraction, values))) if values else None,
        max(whole, default=None),
        (values[(len(values) - 1) // 2] + values[middle]) / 2 if values else None,
        len(set(whole)),
        max(timed)[1] if timed else None,
    )


def _asked(r: random.Random) -> _Asked:
    key = r.choice((("k",), ("k",), (), ("k", "f"), ("a",)))
    others = tuple(r.sample([name for name in ("a", "f") if name not in key], r.choice((0, 0, 1))))
    gap = r.choice((1, 2, 3, 5, 9))
    greatest = r.choice((None, None, gap, 2 * gap, 3 * gap + 1, 40 + gap))
    condition, having, delay = r.random() < 0.4, r.random() < 0.3, r.choice((0, 0, 1, 4, 12))
    declared = "keys = 3, max_stall = '1us', max_ahead = '0', rate = '1/2us'"
    stream = (
        "CREATE STREAM s (ts TIMESTAMP, k VARCHAR KEY, a INT CHECK (a BETWEEN 0 AND 2), x DOUBLE, f BOOLEAN,"
        f" WATERMARK FOR ts AS ts - INTERVAL '{delay} us') WITH ({declared});"
    )
    partition = "" if key == ("k",) and r.random() < 0.5 else f" PARTITION BY ({', '.join(key)})"
    lengths = [f"INTERVAL '{one} us'" for one in (gap, greatest) if one is not None]
    source = f"SESSION({'part' if condition else 's'}{partition}, ts, {', '.join(lengths)})"
    if not key:
        lengths = ["DESCRIPTOR(ts)", *lengths]
        source = f"TABLE(SESSION(TABLE {'part' if condition else 's'}, {', '.join(lengths)}))"
    columns = ["window_start", "window_end", *key, *others]
    calls = (
        "count(*) AS n, sum(x) AS total, max(a) AS most, median(x) AS middle, count(DISTINCT a) AS kinds,"
        " last(x) AS latest"
    )
    grouped = [one for one in columns if one != "window_start" or r.random() < 0.5]
    if "window_start" not in grouped:
        columns = ["window_end", "window_end AS again", *key, *others]
    first = "WITH part AS (SELECT * FROM s WHERE a > 0) " if condition else ""
    alert = (
        f"CREATE ALERT q WITH (allow_unbounded = true) AS {first}SELECT {', '.join(columns)}, {calls}"
        f" FROM {source} GROUP BY {', '.join(grouped)}{' HAVING count(*) > 1' if having else ''};"
    )
    return _Asked(key, gap, greatest, others, condition, having, delay, catalog_of(stream + alert))


def _expected(asked: _Asked, tuples: list[Tuple], marks: list[int]) -> tuple[list[Row], int]:
    """All rows, and how many tuples are in no session."""
    rows: list[Row] = []
    late = 0
    keys = dict.fromkeys(asked.key_of(one) for one in tuples)
    for key in keys:
        mine = [
            (one, mark)
            for one, mark in zip(tuples, marks, strict=True)
            if asked.passes(one) and asked.key_of(one) == key
        ]
        sessions = _sessions(asked, sorted(one[0] for one, mark in mine if one[0] >= mark))
        members: list[list[Tuple]] = [[] for _ in sessions]
        for one, mark in mine:
            number = _session_of(asked, sessions, one[0], mark)
            if number is None:
                late += 1
            else:
                members[number].append(one)
        for times, inside in zip(sessions, members, strict=True):
            rows += asked.rows(*_edges(asked, times), inside)
    return rows, late


def _sessions(asked: _Asked, times: list[int]) -> list[tuple[int, list[int]]]:
    """The sessions of one key: where each begins, and the times in it."""
    found: list[tuple[int, list[int]]] = []
    first = before = 0
    for time in times:
        if not found or time - before > asked.gap:
            first = time
            found.append((time, []))
        while asked.greatest is not None and time >= found[-1][0] + asked.greatest:
            found.append((found[-1][0] + asked.greatest, []))
        found[-1][1].append(time)
        before = time
    assert first <= before
    return found


def _edges(asked: _Asked, session: tuple[int, list[int]], mark: int = _END) -> tuple[int, int]:
    """The beginning and the end of a session, as far as its tuples before a watermark say."""
    start, times = session
    end = max(time for time in times if time < mark) + asked.gap
    return start, end if asked.greatest is None else min(end, start + asked.greatest)


def _session_of(asked: _Asked, sessions: list[tuple[int, list[int]]], time: int, mark: int) -> int | None:
    """The number of the session of a tuple that met a watermark; None if it is late."""
    if time >= mark:
        return next(i for i, (_, times) in enumerate(sessions) if time in times)
    begun = [i for i, (_, times) in enumerate(sessions) if any(one < mark for one in times)]
    if not begun:
        return None
    start, end = _edges(asked, sessions[begun[-1]], mark)
    return begun[-1] if start <= time and end >= mark else None


@pytest.mark.parametrize("times", also_long(30))
def test_the_rows_of_sessions_are_those_of_a_loop(times: int) -> None:
    productive = late = bounded = 0
    tried = cases(0.002) * times
    for case in range(tried):
        r = random.Random(SEED * 1_000_003 + case)
        asked = _asked(r)
        bound = explain(asked.catalog, "q").memory.bound
        bounded += bound is not None
        for _ in range(3):
            tuples = _tuples(r)
            found, marks, missed = _played(r, asked, tuples, bound)
            expected, lost = _expected(asked, tuples, marks)
            assert _sorted(found) == _sorted(_shown(asked, expected)), (SEED, case, asked, tuples, marks)
            assert missed == lost, (SEED, case, asked, tuples, marks)
            ends = [row[1] for row in found]
            assert ends == sorted(ends), (SEED, case)  # type: ignore[type-var]
            productive += len(found) > 0
            late += missed > 0
    assert productive > tried
    assert late > tried // 10
    assert bounded > tried // 4


def test_no_session_begins_with_a_late_reading() -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP, k VARCHAR KEY, WATERMARK FOR ts AS ts);"
    alert = (
        "CREATE ALERT q WITH (allow_unbounded = true) AS SELECT k, window_start, window_end, count(*) AS n"
        " FROM SESSION(s, ts, INTERVAL '3 us') GROUP BY k, window_start, window_end;"
    )
    catalog = catalog_of(stream + alert)
    # 7 of p and 5 of q come behind the watermark 10, where no session of their key has begun before; 18 is
    # before the open session that begins at 20. 31 is in the open session from 30.
    read = [(10, "p"), (7, "p"), (5, "q"), (20, "p"), (18, "p"), (30, "p"), (32, "p"), (31, "p")]
    columns = {
        "ts": Vector(np.array([ts for ts, _ in read], np.int64)),
        "k": Vector(np.array([k for _, k in read], object)),
    }
    recording = Recording(catalog.streams["s"], columns, np.zeros(len(read), np.bool_), {}, 0)
    found = run_query(catalog.alerts["q"].query, catalog, {recording.stream.name: recording})
    expected: list[Row] = [("p", 10, 13, 1), ("p", 20, 23, 1), ("p", 30, 35, 3)]
    assert _sorted(_listed(found.rows.columns)) == _sorted(expected)
    assert found.late == 3


def test_recordings_are_files_with_watermarks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    late = 0
    for case in range(cases(0.0007)):
        r = random.Random(SEED * 1_000_003 + case)
        monkeypatch.setattr(recording_runs, "BATCH", r.choice((1, 3, 10, 1_000)))
        asked = _asked(r)
        files = [_tuples(r) for _ in range(r.randint(1, 3))]
        tuples = [one for file in files for one in file]
        marks = [
            max((one[0] for one in file[:at]), default=_BEGINNING) - asked.delay
            for file in files
            for at in range(len(file))
        ]
        stream, query = asked.catalog.streams["s"], asked.catalog.alerts["q"].query
        assert isinstance(query, SessionGroupBy)
        nothing = np.zeros(len(tuples), np.bool_)
        recording = Recording(stream, _batch(asked, tuples), nothing, {}, 0, None, tuple(map(len, files)))
        found = run_query(query, asked.catalog, {recording.stream.name: recording})
        expected, lost = _expected(asked, tuples, marks)
        assert _sorted(_listed(found.rows.columns)) == _sorted(_shown(asked, expected)), (case, asked, files)
        assert found.late == lost, (case, asked, files)
        keys = run_query(with_group_keys(query), asked.catalog, {recording.stream.name: recording}).rows
        verdict = compare_windowed_groups("q", query, {"s": recording}, keys.columns)
        assert verdict.same, (case, asked, files, verdict)
        late += lost
    assert late > 0


def _shown(asked: _Asked, rows: list[Row]) -> list[Row]:
    """Rows as the query selects them: the first column may be the end of the window again."""
    again = asked.catalog.alerts["q"].query.select[1].name == "again"
    return [(row[1], *row[1:]) if again else row for row in rows]


def _tuples(r: random.Random) -> list[Tuple]:
    """Tuples with disorder, NULLs and gaps; at most one of a key in any two microseconds."""
    now = r.choice((0, -30, 10**9, -(10**15) - 7))
    tuples: list[Tuple] = []
    seen: set[tuple[str, int]] = set()
    for _ in range(r.choice((0, 1, 5, 20, 60))):
        now += r.choice((0, 0, 1, 1, 2, 9)) if r.random() < 0.95 else r.choice((50, 10**7))
        ts = now - (0 if r.random() < 0.7 else r.randint(0, 25))
        k = r.choice(("p", "q", "r"))
        if any((k, at) in seen for at in (ts - 1, ts, ts + 1)):
            continue
        seen.add((k, ts))
        x = r.choice((None, 0.5, 0.25, -1.25, 1e6, 0.125))
        tuples.append((ts, k, r.choice((None, 0, 1, 2)), x, r.choice((None, True, False))))
    return tuples


def _played(
    r: random.Random, asked: _Asked, tuples: list[Tuple], bound: int | None
) -> tuple[list[Row], list[int], int]:
    """All rows; for each tuple the watermark when it came; and how many were late."""
    query = _fresh(asked)
    rows: list[Row] = []
    marks: list[int] = []
    mark, at = _BEGINNING, 0
    most = r.choice((1, 1, 4, 100))
    while at < len(tuples):
        batch = tuples[at : at + r.randint(1, most)]
        at += len(batch)
        assert len(query.take("s", _batch(asked, batch), len(batch))) == 0
        marks += [mark] * len(batch)
        if r.random() < 0.9:
            mark = max(one[0] for one in tuples[:at]) - asked.delay
            rows += _advanced(query, mark)
            if bound is not None:
                assert query.entries() <= bound, (asked, tuples)
        if r.random() < 0.2:
            state, query = query.dump(), _fresh(asked)
            query.load(state)
    rows += _advanced(query, _END)
    assert query.entries() == 0
    return rows, marks, query.late


def _fresh(asked: _Asked) -> SessionGroups:
    found = compile_query(asked.catalog.alerts["q"].query, asked.catalog)
    assert isinstance(found, SessionGroups)
    return found


def _advanced(query: SessionGroups, mark: int) -> list[Row]:
    found = query.advance("s", mark)
    assert (found.completed == -1).all()
    assert len(query.advance("s", mark)) == 0
    return _listed(found.columns)


def _listed(columns: Any) -> list[Row]:
    return list(zip(*(vector.to_list() for vector in columns.values()), strict=True))


def _batch(asked: _Asked, tuples: list[Tuple]) -> dict[str, Vector]:
    stream = asked.catalog.streams["s"]
    columns = zip(*tuples, strict=True) if tuples else [()] * len(NAMES)
    return {
        name: Vector.from_list(values, column.type)
        for name, values in zip(NAMES, columns, strict=True)
        if (column := stream.column(name)) is not None
    }


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))

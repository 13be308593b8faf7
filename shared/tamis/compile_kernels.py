"""Compile all kernels once: `python -m tamis.compile_kernels`, a step of the set-up.

Numba caches compiled kernels beside the source. Without this step, all edges would compile the filter at
their first batch, at the same time, and each would use a core for twelve seconds. The first `tamis omit`
would take as long.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.watches import Frame
from tamis.expressions.evaluate import evaluate
from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call, Column, Type
from tamis.expressions.vectors import Vector
from tamis.omission.batch import retained_by_key
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.operators.latest_candidates import latest
from tamis.operators.synopses.row_numbering import BucketMaxima
from tamis.operators.time_join import slot_kernels
from tamis.operators.time_join.temporal_join import expand, windows
from tamis.operators.windows.open_panes import OpenPanes
from tamis.plan.nodes import Grouping
from tamis.planning.physical.lowering import standing_evaluator
from tamis.predicates.bitmap import Bitmap
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.matching import implies
from tamis.predicates.parse import parse
from tamis.predicates.selectivity import Uniform, selectivity
from tamis.recordings import json_structure
from tamis.recordings.flat_json.columns import FlatDecoder, without_suffixes
from tamis.recordings.flat_json.text_table import TextTable
from tamis.row_order import by_key_and_time
from tamis.sharing.selectivity import MOST_EXACT, BoxUnion, volume
from tamis.sharing.topic_choice import Candidate, CandidateTopics
from tamis.similarity import Fingerprint, KeyedPatterns, Pattern
from tamis.watching.key_history import KeyHistory, LatestTimes, exchange


def warm() -> None:
    """Run each kernel with the types that the services give it."""
    _functions()
    for state in (OmissionState(10), WindowState(1, 10)):
        for number in range(2):
            state.offer([1, 2], [number, number + 1], [1.0, 2.0], [2 * number, 2 * number + 1], now=0)
            state.decide(number, now=0)
        state.note_published([1])
        state.held()
        state.flush()
    for size in (2, 1000):  # small and large inputs take different kernels
        retained_by_key(np.zeros(size, np.int64), np.arange(size), np.zeros(size), 10)
    backwards = np.arange(1000)[::-1].copy()
    by_key_and_time(backwards, backwards)
    rows = np.arange(2)
    expand(*windows(rows, rows, rows, rows, rows))
    _slots()
    latest(rows, rows, rows, rows, np.full(2, -1))
    BucketMaxima(1).rising(np.arange(100).reshape(-1, 1), np.arange(100))
    _count()
    _panes()
    stream, query = parse("a < 1 OR a >= 1 AND b < 1 OR a >= 1 AND b >= 1"), parse("a > 0 AND b > 0")
    implies(query, stream)
    whole = BoxUnion.of(np.zeros((1, 1)), np.ones((1, 1)))
    many = np.zeros((MOST_EXACT + 1, 1))
    volume(many, many + 1.0)
    BoxUnion.of(many, many + 1.0)
    CandidateTopics([Candidate(1, whole, joiner=True, subscribers=0)], 1).choose(whole, subscriber=True)
    columns = {"a": np.zeros(1), "b": np.zeros(1)}
    Dispatcher([stream, query]).which(columns)
    Dispatcher([stream]).any(columns)
    Bitmap(*np.array([[[0]], [[1]]])).any(np.zeros((1, 1), np.int64), np.zeros(1, np.bool_))
    selectivity(stream, {"a": Uniform(0, 10), "b": Uniform(0, 10)})
    watched = KeyedPatterns([Pattern("p", [0.0, 1.0], epsilon=0.1)])
    watched.push(np.zeros(2, np.int64), np.arange(2.0))
    watched.load(watched.dump())
    Fingerprint(2, 1).push(0.0)
    rows = np.arange(2)
    exchange(rows, rows, rows.copy())
    LatestTimes(1).push(rows, rows)
    history, frame = KeyHistory(Type.DOUBLE), Frame(1, 1, 1)
    history.keep(frame)
    slots = history.add(rows, rows, Vector(np.zeros(2)))
    history.readings(slots, history.counts(slots, frame), frame)
    history.forget(rows, 0)
    FlatDecoder({"a": Type.DOUBLE}, "us").decode([b'{"a":1.5}'])
    TextTable().make_room()
    json_structure.check_complexity(b"[]" * (json_structure.MOST_DEPTH + 1))
    json_structure.parts(b"[1]", 1)
    json_structure.lines(b"1", 1)
    payload, suffix = (np.frombuffer(bytearray(text), np.uint8) for text in (b'{"a":1,"_":2}', b',"_":2}'))
    without_suffixes(payload, np.array([13]), suffix, np.array([7]), np.ones(256, np.bool_))


def _functions() -> None:
    """The functions of the C library, of one number or of two."""
    one = Vector(np.ones(1))
    for function in FUNCTIONS.values():
        for count in (1, 2):
            if function.types([Type.DOUBLE] * count) is Type.DOUBLE:
                args = tuple(Column("", "x", Type.DOUBLE) for _ in range(count))
                evaluate(Call(function.name, args, Type.DOUBLE), {("", "x"): one}, 1)


def _slots() -> None:
    """Store the results of two filters for two rows, and read them."""
    words, rows = np.zeros((2, 1), np.uint64), np.arange(2)
    slot_kernels.store_results(words, np.ones((2, 2), np.bool_), rows)
    slot_kernels.stored_by_filter(words, rows)
    slot_kernels.rows_in_ranges(words[0], rows, rows, rows + 1)
    slot_kernels.stored_rows(words[0], rows)
    within = slot_kernels.bits_by_slot(np.ones(2, np.bool_), rows, 1)
    slot_kernels.count_within(words, rows, within, within.copy())
    slot_kernels.mask_by_row(within, rows)


def _count() -> None:
    """Join, count and aggregate duplicates, and continue from the state."""
    calls = "count(*) AS n, max(s.a) AS m, min(s.x) AS l, median(s.k) AS d, median(s.x) AS f"
    sql = (
        "CREATE STREAM s (k INT, a INT, x DOUBLE); CREATE STREAM t (j INT); CREATE ALERT counted AS"
        f" SELECT t.j, {calls} FROM s, t WHERE s.k = t.j AND t.j BETWEEN 0 AND 99 GROUP BY t.j;"
    )
    query, again = standing_evaluator(sql, "counted"), standing_evaluator(sql, "counted")
    numbers = Vector.from_list(list(range(100)), Type.INT)
    query.take("t", {"j": numbers}, 100)
    query.take("s", {"k": numbers, "a": numbers, "x": Vector(numbers.data * 0.5)}, 100)
    again.load(query.dump())


def _panes() -> None:
    """Aggregate numbers of both types by pane and group, as edges do."""
    x, b = (Column("", name, kind) for name, kind in (("x", Type.DOUBLE), ("b", Type.BIGINT)))
    calls = [
        Aggregate(function, column, False, Type.DOUBLE)
        for function in ("var_pop", "min", "max")
        for column in (x, b)
    ]
    calls += [
        Aggregate("arg_max", value, False, value.type, order=order) for value in (x, b) for order in (x, b)
    ]
    panes = OpenPanes(Grouping((), tuple(calls), ()))
    numbers = np.arange(2)
    panes.add(numbers, {("", "x"): Vector(numbers * 0.5), ("", "b"): Vector(numbers)}, 2)
    panes.take()


def remove_stale_caches(folder: Path) -> int:
    """Remove the cached kernels below a folder that are older than the newest source of kernels; returns the
    number of removed files.

    Numba compares a cached kernel with the file that defines it, but not with the files of the kernels that
    it calls. It would continue to use the old code of these.
    """
    sources = (file for file in folder.rglob("*.py") if _HAS_KERNELS.search(file.read_text()))
    newest = max((file.stat().st_mtime for file in sources), default=0.0)
    cached = [file for file in folder.rglob("__pycache__/*") if file.suffix in (".nbi", ".nbc")]
    stale = [file for file in cached if file.stat().st_mtime < newest]
    for file in stale:
        file.unlink()
    return len(stale)


_HAS_KERNELS = re.compile(r"^(from|import) .*\b(njit|numba)\b", re.MULTILINE)


if __name__ == "__main__":
    remove_stale_caches(Path(__file__).parent)
    warm()

"""The number of keys whose tuples the joiner holds, in its reports."""

from __future__ import annotations

import random

from tests.stream_records import progress_record
from tests.unit.joiner.test_core import SECOND, A, Driver, joins, plan, report, tuple_of


def test_a_report_counts_the_keys_of_held_tuples_whichever_edge_sent_them() -> None:
    r, send = random.Random(5), Driver()
    send(plan(1, joins("q", 1, "a", "b")))
    keys = [r.choice(["x", "y", "z", None]) for _ in range(40)]
    output = send(a=[tuple_of("a", (50 + n) * SECOND, key=key) for n, key in enumerate(keys)])
    assert report(output).topics[A].keys == 3  # a tuple without a key joins no other
    output = send(a=[tuple_of("a", 99 * SECOND, key="late")])
    assert report(output).topics[A].keys == 4


def test_keys_without_tuples_do_not_count() -> None:
    send = Driver()
    send(plan(1, joins("q", 1, "a", "b")))
    output = send(a=[tuple_of("a", n * SECOND, key=f"k{n}") for n in range(9)])
    assert report(output).topics[A].keys == 9
    done = {name: [progress_record(f"e/{name}", 1, 0, 99 * SECOND)] for name in "ab"}
    send(**done)
    assert report(send(**done)).topics[A].keys == 0

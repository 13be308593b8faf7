"""Offsets of records that are done in any order."""

from __future__ import annotations

from tamis_alerts.core.offset_tracker import OffsetTracker


def test_an_offset_is_committed_once_all_before_it_are_done() -> None:
    tracker = OffsetTracker(5, 10)
    assert (tracker.committable, tracker.next) == (5, 5)
    for offset in (5, 7, 8):  # one was compacted away, or is a transaction's marker
        tracker.add(offset)
    tracker.done(7)
    assert (tracker.committable, tracker.next) == (5, 9)
    tracker.done(5)
    assert (tracker.committable, tracker.next) == (8, 9)
    tracker.done(8)
    assert (tracker.committable, tracker.next) == (9, 9)


def test_what_is_done_behind_one_that_waits_is_not_told_again() -> None:
    tracker = OffsetTracker(5, 10)
    for offset in range(5, 12):
        assert tracker.add(offset)
    for offset in (11, 7, 8):
        tracker.done(offset)
    assert tracker.to_commit() == (5, "2-3,6-6")
    again = OffsetTracker(5, 10, "2-3,6-6")
    assert again.to_commit() == again.committed
    assert [offset for offset in range(5, 13) if again.add(offset)] == [5, 6, 9, 10, 12]
    for offset in (5, 6):
        again.done(offset)
    assert again.to_commit() == (9, "2-2")


def test_what_is_committed_beside_an_offset_has_its_limit() -> None:
    tracker = OffsetTracker(0, 10)
    for offset in range(4_000):
        tracker.add(offset)
        if offset % 2:
            tracker.done(offset)
    at, metadata = tracker.to_commit()
    assert at == 0 and 3_900 < len(metadata) <= 4_096
    assert not OffsetTracker(at, 10, metadata).add(1)


def test_the_latest_marks_are_remembered() -> None:
    tracker = OffsetTracker(0, 2)
    assert [tracker.is_new_event(event) for event in "abacba"] == [True, True, False, True, False, True]

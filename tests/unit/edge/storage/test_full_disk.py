"""Spool and journal on a full file system: they take nothing more, lose nothing, and can still delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.small_disk import fill, small_disk

from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.storage.disk import DiskError, Reserve
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool

RESERVE = 6 * 2**20
ROWS = 500
RECORDS = [Record(0, "t", 0, None, b"x" * 300, 0)] * ROWS
PAYLOADS = [b"x" * 300] * ROWS


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", 16 * 2**20) as found:
        yield found


def held(reserve: Reserve) -> bool:
    return reserve.held


def _taken(spool: Spool) -> bool:
    try:
        spool.append("a", RECORDS, range(ROWS))
    except DiskError:
        return False
    return True


def test_a_spool_on_a_full_disk_lets_go_of_what_was_delivered(disk: Path) -> None:
    reserve = Reserve(disk / "reserve", RESERVE)
    spool = Spool(disk / "s.db", 10**9, reserve)
    spooled = 0
    while _taken(spool):
        spooled += ROWS
    fill(disk)
    assert held(reserve)
    assert spool.records == spooled > 0
    # A crash and another life: nothing is lost, and nothing that was refused is there.
    spool.close()
    spool = Spool(disk / "s.db", 10**9, reserve)
    assert spool.records == spooled
    while records := spool.take(5000, 10**9):
        spool.delivered([record.token for record in records])
    assert not held(reserve)
    with pytest.raises(DiskError, match="in reserve"):
        spool.append("a", RECORDS, range(ROWS))
    # What was deleted makes room for the reserve.
    spool.give_back()
    assert reserve.hold()
    spool.append("a", RECORDS, range(ROWS))
    assert spool.records == ROWS
    spool.close()


def test_a_journal_on_a_full_disk_commits_and_refuses_readings(disk: Path) -> None:
    reserve = Reserve(disk / "reserve", RESERVE)
    journal = Journal(disk / "j.db", 10**9, reserve)
    safe = 0
    while journal.append("a", PAYLOADS, 5).exception() is None:
        safe += ROWS
    fill(disk)
    assert journal.refused
    assert isinstance(journal.append("a", PAYLOADS, 5).exception(), DiskError)
    assert (journal.end("a"), journal.rows("a"), journal.room) == (safe, safe, 10**9 - 300 * safe)
    done = 0
    while done < safe:
        done = min(safe, done + 5000)
        journal.commit("a", Commit(done, done, 1, 1)).result()
    journal.give_back()
    assert reserve.hold()
    journal.append("a", PAYLOADS, 5).result()
    journal.close()
    again = Journal(disk / "j.db", 10**9, reserve)
    assert again.committed("a")[0].done == safe
    assert [row.seq for row in again.read("a", safe, 10**6, 10**9)] == list(range(safe, safe + ROWS))
    again.close()


def test_readings_do_not_fail_the_commits_that_come_with_them(disk: Path) -> None:
    reserve = Reserve(disk / "reserve", RESERVE)
    journal = Journal(disk / "j.db", 10**9, reserve)
    journal.append("a", PAYLOADS, 5).result()
    fill(disk)
    reserve.release()
    fill(disk)  # somebody else was faster: there is no room and no reserve
    futures = [journal.append("a", PAYLOADS, 5) for _ in range(3)]
    kept = journal.commit("a", Commit(ROWS, 9, 1, 1))
    assert all(isinstance(future.exception(), DiskError) for future in futures)
    if kept.exception() is not None:  # its log had no room left: it is asked for again
        (disk / "ballast").unlink()
        journal.commit("a", Commit(ROWS, 9, 1, 1)).result()
    assert journal.committed("a")[0].done == ROWS
    journal.close()


def test_databases_of_an_older_release_give_room_back_too(disk: Path) -> None:
    import sqlite3

    from tamis_edge.storage.spool import _SCHEMA

    with sqlite3.connect(disk / "s.db") as old:
        old.executescript("PRAGMA auto_vacuum=NONE;" + _SCHEMA)
    old.close()
    spool = Spool(disk / "s.db", 10**9, Reserve(disk / "reserve", RESERVE))
    for _ in range(8):
        spool.append("a", RECORDS, range(ROWS))
    spool.delivered([record.token for record in spool.take(10**6, 10**9)])
    spool.give_back()
    assert (disk / "s.db").stat().st_size < 100_000
    spool.close()

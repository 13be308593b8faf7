"""Journal and spool: what they took survives a SIGKILL, in order, and nothing that they refused does."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tamis.errors import InputError, UnavailableError
from tamis.telemetry.threads import DeadThreadError
from tamis_edge.core.commit import Commit, WatchedCommit
from tamis_edge.core.records import Record
from tamis_edge.publishing.dead_letter_files import DeadLetterFiles
from tamis_edge.storage.database import FORMAT
from tamis_edge.storage.disk import RESERVE, Reserve
from tamis_edge.storage.journal import Journal, JournalFullError
from tamis_edge.storage.spool import Spool


def record(i: int, token: int = 0) -> Record:
    headers = [("reason", b"x")] if i % 2 else None
    return Record(token, "t", i % 3, b"k" if i % 2 else None, b"value %d" % i, 1000 + i, headers)


def plain(records: list[Record]) -> list[Record]:
    return [r._replace(token=0) for r in records]


def test_a_journal_numbers_its_rows_by_shard(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    journal.append("a", [b"1", b"2"], 5).result()
    journal.append("b", [b"x"], 6).result()
    journal.append("a", [b"3"], 7).result()
    assert [(r.seq, r.arrival, r.payload) for r in journal.read("a", 1, 10, 10**9)] == [
        (1, 5, b"2"),
        (2, 7, b"3"),
    ]
    assert [r.payload for r in journal.read("b", 0, 10, 10**9)] == [b"x"]
    assert journal.read("c", 0, 10, 10**9) == []
    assert journal.rows("a") == 3
    assert journal.committed("a") == (Commit(), False)
    journal.commit("a", Commit(2, 99, 3, 40, 7)).result()
    journal.close()
    again = Journal(tmp_path / "j.db", 1000)
    assert again.committed("a") == (Commit(2, 99, 3, 40, 7), False)
    assert [r.seq for r in again.read("a", 0, 10, 10**9)] == [2]
    assert (again.rows("a"), again.rows("b"), again.room) == (1, 1, 1000 - 2)
    again.append("a", [b"4"], 8).result()
    assert [r.seq for r in again.read("a", 0, 10, 10**9)] == [2, 3]
    again.commit("f", Commit(7, 1, 1, 1), final=True).result()
    assert again.committed("f") == (Commit(7, 1, 1, 1), True)
    again.close()


def test_numbers_go_on_behind_rows_that_were_done_with(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    journal.append("a", [b"1", b"2"], 5).result()
    journal.commit("a", Commit(2)).result()
    journal.close()
    again = Journal(tmp_path / "j.db", 1000)
    again.append("a", [b"3"], 6).result()
    assert [r.seq for r in again.read("a", 0, 10, 10**9)] == [2]
    again.close()


def test_a_full_journal_takes_nothing_until_there_is_room(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 10)
    journal.append("a", [b"12345", b"6789"], 0).result()
    with pytest.raises(JournalFullError):
        journal.append("a", [b"xy"], 0)
    journal.commit("a", Commit(1)).result()
    journal.append("a", [b"xy"], 0).result()
    assert [r.payload for r in journal.read("a", 0, 9, 10**9)] == [b"6789", b"xy"]
    journal.close()


def test_requests_of_many_threads_keep_their_order_each(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 10**6)

    def post(name: int) -> None:
        for i in range(50):
            journal.append("a", [b"%d %d" % (name, i)], 0).result()

    threads = [threading.Thread(target=post, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = journal.read("a", 0, 1000, 10**9)
    assert [r.seq for r in rows] == list(range(200))
    for n in range(4):
        assert [r.payload for r in rows if r.payload.startswith(b"%d " % n)] == [
            b"%d %d" % (n, i) for i in range(50)
        ]
    journal.close()


def test_a_database_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_bytes(b"not a database at all" * 1000)
    with pytest.raises(UnavailableError, match=r"j\.db: can't open the database"):
        Journal(tmp_path / "j.db", 10)


def test_a_failed_write_fails_the_request_and_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    journal.append("a", [b"1"], 0).result()
    with sqlite3.connect(tmp_path / "j.db") as other:
        other.execute(
            "CREATE TRIGGER no BEFORE INSERT ON readings BEGIN SELECT raise(ABORT, 'disk gone'); END"
        )
    other.close()
    with pytest.raises(UnavailableError, match="disk gone"):
        journal.append("a", [b"2"], 0).result()
    with sqlite3.connect(tmp_path / "j.db") as other:
        other.execute("DROP TRIGGER no")
    other.close()
    journal.append("a", [b"3"], 0).result()
    assert [(r.seq, r.payload) for r in journal.read("a", 0, 9, 10**9)] == [(0, b"1"), (1, b"3")]
    assert journal.room == 998
    journal.close()


def test_what_waits_to_be_written_counts_after_a_failed_write_too(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    go = threading.Event()
    transact = journal._transact

    def slowly(batch: list[Any]) -> None:
        assert go.wait(10)
        transact(batch)

    journal._transact = slowly  # type: ignore[method-assign]
    with sqlite3.connect(tmp_path / "j.db") as other:
        other.execute(
            "CREATE TRIGGER no BEFORE INSERT ON readings WHEN NEW.payload = x'21' "
            "BEGIN SELECT raise(ABORT, 'disk gone'); END"
        )
    other.close()
    failing = journal.append("a", [b"!"], 0)
    time.sleep(0.1)  # it has been taken up: what comes now is in the next transaction
    behind = journal.append("a", [b"x" * 600], 0)
    seen: list[int] = []
    failing.add_done_callback(lambda _: seen.append(journal.room))
    go.set()
    with pytest.raises(UnavailableError, match="disk gone"):
        failing.result(10)
    behind.result(10)
    assert seen == [400]
    assert journal.room == 400
    journal.close()


def test_a_journal_whose_thread_dies_says_so_and_lets_nobody_wait(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    journal.append("a", [b"1"], 0).result()
    journal.check()
    journal._shard = lambda *_: 1 // 0  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="the journal is closed"):
        journal.append("a", [b"!"], 0).result(10)
    with pytest.raises(UnavailableError, match="the journal is closed"):
        journal.append("a", [b"2"], 0).result(10)
    with pytest.raises(UnavailableError, match="the journal is closed"):
        journal.commit("a", Commit(1)).result(10)
    journal._thread.join(10)
    with pytest.raises(DeadThreadError, match="'journal' died of ZeroDivisionError"):
        journal.check()
    journal.close()
    again = Journal(tmp_path / "j.db", 1000)
    assert [r.payload for r in again.read("a", 0, 9, 99)] == [b"1"]
    assert again.room == 999
    again.close()


def test_what_is_read_at_once_is_bounded_in_bytes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.db", 1000)
    journal.append("a", [b"x" * 40] * 5, 0).result()
    assert [len(journal.read("a", first, 9, 80)) for first in (0, 2, 4)] == [2, 2, 1]
    journal.close()
    spool = Spool(tmp_path / "s.db", 10**6)
    spool.append("a", [Record(0, "t", 0, None, b"x" * 40, 0)] * 5, range(5))
    assert [len(spool.take(9, 80)) for _ in range(3)] == [2, 2, 1]
    spool.close()


def test_a_letter_that_does_not_fit_into_kafka_is_kept_once(tmp_path: Path) -> None:
    letter = Record(1, "t", -1, None, b"payload\n", 5, [("reason", b"too_large"), ("error", "µ".encode())])
    files = DeadLetterFiles(tmp_path / "letters", 120)
    path = files.keep(letter)
    assert path.read_bytes() == '{"reason":"too_large","error":"µ"}\npayload\n'.encode()
    assert files.keep(letter._replace(token=2)) == path
    again = DeadLetterFiles(tmp_path / "letters", 120)
    again.keep(letter._replace(value=b"another"))
    with pytest.raises(UnavailableError, match="folder of dead letters is full"):
        again.keep(letter._replace(value=b"x" * 40))
    assert len(list((tmp_path / "letters").iterdir())) == 2


def test_a_spool_gives_back_in_order_what_it_took(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", 50)
    spool.append("a", [record(i) for i in range(4)], range(4))
    assert spool.waiting
    assert not spool.full
    spool.append("a", [record(4), record(5)], [4, 5])
    first = spool.take(4, 99)
    assert plain(first) == [record(i) for i in range(4)]
    spool.delivered([r.token for r in first[:3]])
    assert spool.records == 3
    assert plain(spool.take(9, 99)) == [record(4), record(5)]
    assert [spool.waiting, spool.take(9, 99)] == [False, []]
    spool.close()
    again = Spool(tmp_path / "s.db", 5)
    assert again.full
    assert plain(again.take(9, 99)) == [record(i) for i in (3, 4, 5)]
    again.close()


def test_a_spool_gives_up_what_the_source_gives_again(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s.db") as old:  # as an older release left it
        old.execute(
            "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL,"
            " part INTEGER NOT NULL, key BLOB, value BLOB NOT NULL, arrival INTEGER NOT NULL, headers TEXT)"
        )
        old.execute("INSERT INTO records VALUES (1, 't', 0, NULL, x'76616c75652030', 1000, NULL)")
    old.close()
    spool = Spool(tmp_path / "s.db", 10**6)
    spool.append("a", [record(i) for i in (2, 4, 6)], [102, 104, 106])
    spool.append("b", [record(8)], [108])
    spool.close()
    again = Spool(tmp_path / "s.db", 10**6)
    again.delete_from("a", 104)
    assert (again.records, again.bytes) == (3, 21)
    assert [r.value for r in again.take(9, 10**6)] == [b"value 0", b"value 2", b"value 8"]
    assert not again.waiting
    again.close()


def test_a_spool_gives_up_tuples_of_watched_streams_by_their_numbers(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s.db", 10**6)
    spool.append("a", [record(i) for i in (0, 1, 2, 3)], [~5, 90, ~6, ~7])
    spool.append("b", [record(4)], [~7])
    spool.delete_from("a", 100)
    assert spool.records == 5
    spool.delete_from("a", 100, 6)
    assert [r.value for r in spool.take(9, 10**6)] == [b"value 0", b"value 1", b"value 4"]
    spool.close()


def test_a_commit_about_watched_streams_is_stored_and_not_mixed_with_that_of_an_earlier_release(
    tmp_path: Path,
) -> None:
    commit = Commit(2, 99, 3, 40, 7, 9, WatchedCommit(8, -5, 2**63 - 1, 9, 4))
    journal = Journal(tmp_path / "j.db", 10**6)
    journal.commit("a", commit).result()
    journal.close()
    journal = Journal(tmp_path / "j.db", 10**6)
    assert journal.committed("a") == (commit, False)
    journal.close()
    with sqlite3.connect(tmp_path / "j.db") as older:
        older.execute("UPDATE shards SET done = 8, read = 12")
    older.close()
    journal = Journal(tmp_path / "j.db", 10**6)
    assert journal.committed("a") == (Commit(8, 99, 3, 40, 7, 12), False)
    journal.commit("a", Commit(12)).result()
    assert journal.committed("a") == (Commit(12), False)
    journal.close()


CHILD = """
import sys, threading, time
from pathlib import Path
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool
from tamis_edge.core.records import Record
from tamis_edge.core.commit import Commit, WatchedCommit
journal, spool = Journal(Path(sys.argv[1]) / "j.db", 10**9), Spool(Path(sys.argv[1]) / "s.db", 10**9)
i = 0
while True:
    journal.append("a", [b"%d" % i], i).result()
    if i % 10 == 9:
        journal.commit("a", Commit(i - 20, i, 1, 1)).result() if i > 20 else None
    spool.append("a", [Record(0, "t", 0, None, b"%d" % i, i)], [i])
    print(i, flush=True)
    i += 1
"""


def test_what_was_confirmed_survives_a_kill(tmp_path: Path) -> None:
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        last = -1
        for line in child.stdout:
            last = int(line)
            if last >= 50:
                os.kill(child.pid, signal.SIGKILL)
                break
        last = max([last, *(int(line) for line in child.stdout.read().split())])
        child.stdout.close()
        child.wait()
        journal, spool = Journal(tmp_path / "j.db", 10**9), Spool(tmp_path / "s.db", 10**9)
        commit, _ = journal.committed("a")
        rows = journal.read("a", 0, 10**6, 10**9)
        assert [r.seq for r in rows] == list(range(commit.done, commit.done + len(rows)))
        assert [int(r.payload) for r in rows] == [r.seq for r in rows]
        assert rows[-1].seq >= last
        spooled = [int(r.value) for r in spool.take(10**6, 10**9)]
        assert spooled == list(range(len(spooled)))
        assert len(spooled) > last
        journal.close()
        spool.close()
        for file in tmp_path.iterdir():
            file.unlink()


def test_a_reserve_that_may_be_too_small_is_logged(tmp_path: Path) -> None:
    with capture_logs() as logs:
        Reserve(tmp_path / "enough", RESERVE)
    assert logs == []
    with capture_logs() as logs:
        reserve = Reserve(tmp_path / "small", 2**20)
    assert reserve.held
    (entry,) = logs
    assert entry["log_level"] == "warning"
    assert entry["bytes"] == 2**20
    assert f"set limits.reserve to {RESERVE}" in entry["hint"]


@pytest.mark.parametrize("store", [Spool, Journal])
def test_a_file_of_a_newer_release_is_refused_and_left_as_it_is(
    tmp_path: Path, store: type[Spool] | type[Journal]
) -> None:
    path = tmp_path / "s.db"
    store(path, 10**6).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        db.execute(f"PRAGMA user_version={FORMAT + 1}")
        before = list(db.iterdump())
    with pytest.raises(InputError, match=rf"format {FORMAT + 1}; this edge reads {FORMAT}"):
        store(path, 10**6)
    with closing(sqlite3.connect(path)) as db:
        assert list(db.iterdump()) == before
        db.execute("PRAGMA user_version=0")  # a release before the number
    store(path, 10**6).close()

"""Functions in forks: their answers and errors, limits of time, memory and size, and forks that are ended."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tamis.errors import InputError, RefusedError, TamisError, UnavailableError
from tamis_registry.proving import fork as module
from tamis_registry.proving.fork import Fork


def made(seconds: int = 20) -> Fork:
    return Fork(seconds, 256 << 20, 1 << 20)


def children() -> list[psutil.Process]:
    return psutil.Process().children()


def test_the_answer_comes_back_and_changes_stay_there() -> None:
    kept: list[int] = []

    def work() -> bytes:
        kept.append(os.getpid())
        return b"a" * 1_000_000 + str(kept[0]).encode()

    found = made().run(work)
    assert int(found[1_000_000:]) != os.getpid() and not kept


def test_errors_come_back() -> None:
    def wrong() -> bytes:
        raise InputError("no", where="here", hint="do")

    with pytest.raises(InputError, match="here: no"):
        made().run(wrong)
    with pytest.raises(TamisError, match="its log has the cause"):
        made().run(lambda: bytes([1 // 0]))


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (lambda: bytes(sum(1 for _ in iter(int, 1))), "more than 1 s of processor time"),
        (lambda: bytes(len([bytes(1 << 20) for _ in range(600)])), "too much memory"),
        (lambda: bytes(2 << 20), "more than 1 MiB"),
    ],
)
def test_limits(work: Callable[[], bytes], word: str) -> None:
    with pytest.raises(RefusedError, match=word):
        made(1).run(work)
    assert made().run(lambda: b"ok") == b"ok"


def asleep() -> bytes:
    time.sleep(60)
    return b""


def test_a_fork_ends_when_it_is_killed() -> None:
    one = made()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(one.run, asleep)
        while not children():
            time.sleep(0.01)
        one.kill()
        with pytest.raises(UnavailableError, match="was ended"):
            asked.result(5)
    assert not children()
    with pytest.raises(UnavailableError, match="was ended"):
        one.run(lambda: b"never")


def test_a_fork_that_waits_for_a_lock_of_another_thread_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASLEEP_SECONDS", 1)
    lock, forked = threading.Lock(), threading.Event()

    def hold() -> None:
        with lock:
            forked.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    while not lock.locked():
        time.sleep(0.01)
    fork = made()
    end = fork._end

    def ended() -> None:  # the first fork is over
        end()
        forked.set()
        other.join()

    monkeypatch.setattr(fork, "_end", ended)

    def work() -> bytes:
        with lock:
            return b"got it"

    assert fork.run(work) == b"got it"


def test_it_holds_no_connection_of_the_registry() -> None:
    read, write = os.pipe()
    fds = made().run(lambda: " ".join(os.listdir("/proc/self/fd")).encode()).split()
    assert str(read).encode() not in fds and len(fds) <= 5  # 0 to 2, the pipe, and that of the listing
    os.close(read)
    os.close(write)

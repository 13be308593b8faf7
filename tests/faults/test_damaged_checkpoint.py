"""Fault 9: each kind of file of the joiner's checkpoint is cut, changed by a bit, or deleted.

The joiner either ends with a message that names the file and what to do, or it goes on from where it was.
It never begins without its state in silence. In the end one message is followed, and all alarms are there.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.faults.load import SECOND
from tests.faults.loaded_fleet import MARGIN, LoadedFleet, loaded_fleet
from tests.integration.joiner.test_joiner import flip, follow, newest_batches

from tamis.messaging.topics import ALARMS
from tamis_joiner.checkpoint.files import Checkpoint

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
END = 120  # event seconds before the copy of the checkpoint
ANEW = "the checkpoint is empty"
ADVICE = ("start again", "restore the directory", "start with a new directory", "move it back", "restore")


def kinds(query: Path) -> dict[str, Path]:
    """A file or directory of each kind that the checkpoint has, by its kind."""
    batch, done = newest_batches(query)
    state = query / "state/0"
    version = batch + (done == batch)
    snapshot = max(
        (file for file in (state / "0").glob("*.zip") if int(file.stem) <= version),
        key=lambda file: int(file.stem),
    )
    found = {
        "metadata": query / "metadata",
        "offsets, newest": query / f"offsets/{batch}",
        "offsets, one before": query / f"offsets/{batch - 1}",
        "commits, newest": query / f"commits/{done}",
        "snapshot": snapshot,
        "table of a snapshot": _table(snapshot),
        "operator": max((state / "_metadata/v2").glob("[0-9]*"), key=lambda file: int(file.name)),
        "schema of the state": next((state / "_stateSchema").glob("*/[0-9]*")),
        "partition count": query.parent / "tamis-joiner.json",
        "ids of topics": query.parent / "tamis-topics.json",
        "all offsets": query / "offsets",
        "all commits": query / "commits",
        "state of a partition": state / "1",
        "all state": query / "state",
        "the query": query,
    }
    changelog = state / f"0/{version}.changelog"
    return found | ({"changelog": changelog} if changelog.exists() else {})


def _table(snapshot: Path) -> Path:
    """A file of RocksDB that a snapshot names."""
    with ZipFile(snapshot) as archive:
        _, _, document = archive.read("metadata").decode().partition("\n")
    return snapshot.parent / "SSTs" / str(json.loads(document)["sstFiles"][0]["dfsSstFileName"])


def damages(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The damages that are done to a file or a directory, by name."""
    if file.is_dir():
        yield "deleted", lambda: shutil.rmtree(file)
        return
    yield "cut", lambda: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    yield "bit flipped", lambda: flip(file)
    yield "deleted", file.unlink


def test_a_damaged_checkpoint(tmp_path: Path) -> None:
    with loaded_fleet(tmp_path, seed=9) as fed:
        joiner, directory = fed.fleet.processes["joiner"], fed.fleet.spec.directory / "joiner"
        copy = tmp_path / "copy"
        fed.load.until(END, pause=0.1)
        fed.wait("the first event seconds", lambda: fed.passed(END - MARGIN))
        query = directory / "query"
        assert joiner.stop() == 0
        shutil.copytree(directory, copy)
        assert Checkpoint(query).damage() == []
        fed.load.until(END + 40)
        seen = {}
        for kind, file in kinds(query).items():
            for damage, do in damages(file):
                do()
                seen[kind, damage] = said = _what_it_does(fed, query, file)
                print(f"{kind}, {damage}: {said}")
                shutil.rmtree(directory)
                shutil.copytree(copy, directory)
        # Its message leads back. There is no way back from a damaged snapshot if it is the only one, and
        # beside an older one Spark may go on by itself.
        changes = kinds(query)["changelog"]
        flip(changes)
        follow(_what_it_does(fed, query, changes), query)
        joiner.start()
        fed.said(f"{len(seen)} damages of the checkpoint", fed.check())


def _what_it_does(fed: LoadedFleet, query: Path, file: Path) -> str:
    """The message with which the joiner ends, or "goes on", or "begins anew" if it says so."""
    joiner = fed.fleet.processes["joiner"]
    began, read, before = time.time(), len(joiner.log.read_text()), _early_alarms(fed)
    joiner.start()
    deadline = time.monotonic() + 300
    while not any(batch.stat().st_mtime > began for batch in (query / "commits").glob("[0-9]*")):
        assert time.monotonic() < deadline
        if joiner.exit_code() is not None:
            said = joiner.last_error() or ""
            assert joiner.exit_code() == 2, said
            # Without its snapshot the directory of a partition is named. Other messages name the file.
            in_state = (query / "state") in file.parents
            named = str(file) in said or (in_state and str(file.parent) in said)
            assert named and any(advice in said for advice in ADVICE), said
            return said
        time.sleep(0.3)
    assert joiner.stop() == 0
    first = query / "offsets/0"  # removed after a hundred batches
    anew = first.exists() and first.stat().st_mtime > began
    if not anew and _early_alarms(fed) < 2 * before:
        return "goes on"
    assert ANEW in joiner.log.read_text()[read:], "it began without its state, and said nothing"
    return "begins anew"


def _early_alarms(fed: LoadedFleet) -> int:
    """Records of alarms from before the copy of the checkpoint. A joiner without its state writes all of them
    again, and one that goes on few of them.
    """
    return sum(record["event_time"] < (END - MARGIN) * SECOND for record in fed.records(ALARMS))

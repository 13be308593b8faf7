"""Damage of a checkpoint: the file, the fault, and the way to repair it.

The checkpoint is laid out as Spark does it: batches 3 to 5 are kept, and the last snapshot is of version 2.
tests/integration/joiner/test_joiner.py damages a real one.
"""

from __future__ import annotations

import json
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.errors import RefusedError
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis_joiner.checkpoint.files import Checkpoint
from tamis_joiner.checkpoint.location import LocalFiles
from tamis_joiner.checkpoint.start_checks import check_partition_count
from tamis_joiner.service import Joiner
from tamis_joiner.settings import JoinerSettings

PARTITIONS = 2
LAST = 5
SCHEMA = "state/0/_stateSchema/default/0_a"
TABLE = "state/0/0/SSTs/7-a.sst"


def put(file: Path, content: bytes) -> None:
    """A file with its checksums, as Hadoop writes them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    sums = [zlib.crc32(content[at : at + 512]).to_bytes(4) for at in range(0, len(content), 512)]
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4) + b"".join(sums))


def log(*documents: object) -> bytes:
    return "\n".join(["v1", *map(json.dumps, documents)]).encode()


@pytest.fixture
def query(tmp_path: Path) -> Path:
    query = tmp_path / "joiner" / "query"
    put(query / "metadata", b'{"id":"540d4fee-6d89-4cd9-b293-4b49a026fc49"}')
    settings = {"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": str(PARTITIONS)}}
    for batch in range(3, LAST + 1):
        put(query / "offsets" / str(batch), log(settings, {"tamis.plans": {"0": batch}}))
        put(query / "commits" / str(batch), log({"nextBatchWatermarkMs": 0}))
    put(query / SCHEMA, b"schema")
    stores = [{"storeName": "default", "stateSchemaFilePaths": [(query / SCHEMA).as_uri()]}]
    put(query / "state/0/_metadata/v2/0", log({"stateStoreInfo": stores}))
    for partition in range(PARTITIONS):
        folder = query / "state/0" / str(partition)
        for version in range(1, LAST + 2):
            put(folder / f"{version}.changelog", bytes(range(256)) * 5)
        table = folder / "SSTs" / Path(TABLE).name
        put(table, b"table" * 300)
        with zipfile.ZipFile(folder / "snapshot", "w") as archive:
            archive.writestr(
                "metadata", log({"sstFiles": [{"dfsSstFileName": table.name, "sizeBytes": 1500}]})
            )
        put(folder / "2.zip", (folder / "snapshot").read_bytes())
        (folder / "snapshot").unlink()
    return query


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_at_a_checksum(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1024])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(bytes(content))


def empty(file: Path) -> None:
    file.write_bytes(b"")


def delete(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() else file.unlink()


def refusal(query: Path) -> str:
    checkpoint = Checkpoint(query)
    found = checkpoint.damage()
    return str(checkpoint.refusal(found)).replace(str(query), "…") if found else ""


BACK = "delete …/commits/5 and start again: batch 5 is run again with its records from Kafka, and its alarms"
TO_4 = "delete, in …, all in offsets above 4 and all in commits from 4 on and start again: the batches from"
RESTORE = (
    "restore the directory from a backup, or start with a new directory (--checkpoint): the joiner then reads"
)
NEW_IDENTITY = "delete .metadata.crc beside it and start again: the query then has a new identity"


@pytest.mark.parametrize(
    ("file", "damage", "what", "advice"),
    [
        ("metadata", delete, "is missing", NEW_IDENTITY),
        ("metadata", empty, "is empty", NEW_IDENTITY),
        ("metadata", flip, "doesn't match its checksum at byte 0 (in .metadata.crc)", NEW_IDENTITY),
        ("offsets/5", delete, "is missing, though batch 5 is in commits", TO_4),
        ("offsets/5", cut, "doesn't match its checksum at byte 0 (in .5.crc)", TO_4),
        ("offsets/5", empty, "is empty", TO_4),
        ("offsets/4", delete, "is missing", RESTORE),
        ("offsets", delete, "is missing, though batch 5 is in commits", RESTORE),
        ("commits/5", flip, "doesn't match its checksum at byte 0 (in .5.crc)", BACK),
        ("commits/5", cut, "doesn't match its checksum at byte 0 (in .5.crc)", BACK),
        ("state/0/0/6.changelog", flip, "doesn't match its checksum at byte 512 (in .6.changelog.crc)", BACK),
        ("state/0/0/6.changelog", cut, "doesn't match its checksum at byte 512 (in .6.changelog.crc)", BACK),
        ("state/0/0/6.changelog", cut_at_a_checksum, "is cut off at byte 1024", BACK),
        ("state/0/1/6.changelog", delete, "is missing", BACK),
        ("state/0/1/6.changelog", empty, "is empty", BACK),
        ("state/0/1/5.changelog", delete, "is missing", TO_4),
        ("state/0/1/3.changelog", delete, "is missing", RESTORE),
        ("state/0/0/2.zip", flip, "doesn't match its checksum at byte 0 (in .2.zip.crc)", RESTORE),
        (TABLE, delete, "is missing", RESTORE),
        (TABLE, cut, "doesn't match its checksum at byte 512 (in .7-a.sst.crc)", RESTORE),
        (SCHEMA, delete, "is missing", RESTORE),
        ("state/0/_metadata/v2/0", cut, "doesn't match its checksum at byte 0 (in .0.crc)", RESTORE),
        ("state/0/_metadata", delete, "has no file", RESTORE),
        ("state", delete, "is missing", RESTORE),
    ],
)  # fmt: skip
def test_damage_is_named_with_what_to_do(
    query: Path, file: str, damage: Callable[[Path], None], what: str, advice: str
) -> None:
    damage(query / file)
    said = refusal(query)
    assert said.startswith(f"…/{file}"), said
    assert what in said, said
    assert advice in said, said


@pytest.mark.parametrize(
    "unused",
    ["commits/4", "commits", "offsets/3", "state/0/0/1.changelog", "state/0/0/2.changelog", "commits/5"],
)
def test_what_spark_does_without_is_no_damage(query: Path, unused: str) -> None:
    delete(query / unused)
    assert refusal(query) == ""


def test_a_batch_that_was_cut_off_is_no_damage(query: Path) -> None:
    put(query / "offsets/6", (query / "offsets/5").read_bytes())
    assert refusal(query) == ""
    delete(query / "state/0/0/6.changelog")
    assert "all in offsets above 5 and all in commits from 5 on" in refusal(query)


def test_a_new_checkpoint_and_one_without_a_batch_are_whole(query: Path, tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new").damage() == []
    assert "has no batch yet" in Checkpoint(tmp_path / "new").hint_without_damage()
    for folder in ("offsets", "commits"):
        delete(query / folder)
    assert "…/offsets: the checkpoint is damaged: this file has no batch, and the state has" in refusal(query)
    delete(query / "state")
    assert refusal(query) == ""


def test_several_damages_are_counted(query: Path) -> None:
    for version in (3, 4, 5, 6):
        delete(query / f"state/0/1/{version}.changelog")
    said = refusal(query)
    assert "3.changelog: the checkpoint is damaged: this file is missing; …/state/0/1/4.changelog is" in said
    assert "; 4 are damaged in all" in said


def test_changes_without_a_snapshot_are_damage(query: Path) -> None:
    delete(query / "state/0/1/2.zip")
    assert (
        "…/state/0/1: the checkpoint is damaged: this directory has no snapshot up to version 6"
        in refusal(query)
    )


def test_metadata_and_more(query: Path) -> None:
    delete(query / "metadata")
    delete(query / "offsets/4")
    assert RESTORE in refusal(query)


def test_a_checkpoint_that_was_moved_says_so(query: Path) -> None:
    """Spark names the files that describe its state by their whole paths."""
    moved = query.parent.with_name("elsewhere")
    query.parent.rename(moved)
    said = refusal(moved / "query")
    assert f"was moved, and Spark looks for {query / SCHEMA}" in said
    assert f"move it back to {query}, or start with a new directory" in said


def test_a_file_without_checksums_is_told_of(query: Path) -> None:
    whole = Checkpoint(query)
    assert whole.damage() == []
    assert whole.hint_without_damage().startswith("the checkpoint is complete, by the checksums of its files")
    (query / "state/0/0/.6.changelog.crc").unlink()
    unproven = Checkpoint(query)
    assert unproven.damage() == []
    said = unproven.hint_without_damage()
    assert "but 1 of its files, such as" in said
    assert "6.changelog, have no checksums" in said


def test_a_file_that_is_no_log_is_damage_also_without_checksums(query: Path) -> None:
    for name, text in (("offsets/5", "v1\n{}"), ("commits/5", "nothing"), ("metadata", "[]")):
        content = (query / name).read_text()
        (query / name).write_text(text)
        (query / name).with_name(f".{Path(name).name}.crc").unlink()
        assert f"…/{name}: the checkpoint is damaged: this file can't be read:" in refusal(query)
        put(query / name, content.encode())
    assert refusal(query) == ""


# ---- the joiner


def joiner(query: Path) -> Joiner:
    settings = JoinerSettings(checkpoint=str(query.parent))
    return Joiner(
        ServiceSettings(telemetry_port=0), KafkaSettings(bootstrap="127.0.0.1:1"), settings, TableSettings()
    )


def test_damaged_logs_end_the_joiner_before_spark_starts(query: Path) -> None:
    """Spark would run batch 4 a second time first."""
    delete(query / "offsets/5")
    with pytest.raises(RefusedError, match=r"offsets/5: .* is missing, though batch 5 is in commits"):
        joiner(query).run()


@pytest.mark.parametrize("mark", [None, "{", '{"partitions": 2}'])
def test_the_partition_count_is_that_of_the_query(query: Path, mark: str | None) -> None:
    file = query.parent / "tamis-joiner.json"
    if mark is not None:
        file.write_text(mark)
    with pytest.raises(RefusedError, match=r"a fleet with 2 partitions; tamis\.plans has 3"):
        check_partition_count(LocalFiles(query.parent), 3)
    check_partition_count(LocalFiles(query.parent), 2)
    assert json.loads(file.read_text()) == {"partitions": 2}


def test_an_unreadable_count_of_a_query_without_a_batch_is_written_again(tmp_path: Path) -> None:
    query = tmp_path / "query"
    (tmp_path / "tamis-joiner.json").write_text("{")
    check_partition_count(LocalFiles(query.parent), 3)
    with pytest.raises(RefusedError, match="with 3 partitions"):
        check_partition_count(LocalFiles(query.parent), 4)

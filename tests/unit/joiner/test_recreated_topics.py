"""Topics that are created again are removed from the offsets of the query's last batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import UnavailableError
from tamis_joiner.checkpoint.location import LocalFiles, fault, has_checksums
from tamis_joiner.checkpoint.start_checks import KnownTopics

PLANS, AIR = "tamis.plans", "tamis.stream.air.1"


def known(directory: Path) -> KnownTopics:
    return KnownTopics(LocalFiles(directory))


def write_batch(directory: Path, batch: int, ends: dict[str, dict[str, int]]) -> Path:
    file = directory / "query/offsets" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(ends)}')
    file.with_name(f".{batch}.crc").write_bytes(b"crc\0" + bytes(8))
    return file


def ends_of(file: Path) -> dict[str, dict[str, int]]:
    version, settings, ends = file.read_text().split("\n")
    assert (version, settings) == ("v1", '{"batchWatermarkMs":0}')
    found: dict[str, dict[str, int]] = json.loads(ends)
    return found


def test_only_the_last_batch_loses_only_topics_with_another_id(tmp_path: Path) -> None:
    ends = {PLANS: {"0": 8, "1": 8}, AIR: {"0": 5, "1": 6}}
    earlier, last = (write_batch(tmp_path, batch, ends) for batch in (9, 10))
    assert known(tmp_path).forget_recreated({PLANS: "a", AIR: "b"}) == []  # the first ids that are known
    assert ends_of(last) == ends
    assert known(tmp_path).forget_recreated({PLANS: "c", AIR: "b"}) == [PLANS]
    assert ends_of(last) == {AIR: {"0": 5, "1": 6}}
    assert ends_of(earlier) == ends
    assert has_checksums(last) and fault(last) is None
    flipped = bytearray(last.read_bytes())
    flipped[len(flipped) // 2] ^= 16
    last.write_bytes(bytes(flipped))
    assert fault(last) is not None and has_checksums(earlier)
    write_batch(tmp_path, 11, ends)
    assert known(tmp_path).forget_recreated({PLANS: "c", AIR: "b"}) == []


def test_a_topic_is_recreated_when_its_id_changes_and_not_while_it_is_away(tmp_path: Path) -> None:
    topics = known(tmp_path)
    assert topics.recreated({PLANS: "a"}) == []
    assert topics.recreated({PLANS: "a", AIR: "b"}) == []
    assert topics.recreated({AIR: "b"}) == []
    again = {PLANS: "c", AIR: "b"}
    assert topics.recreated(again) == known(tmp_path).recreated(again) == [PLANS]
    assert topics.recreated(again) == [PLANS], "until the query has forgotten it"
    assert topics.forget_recreated(again) == [PLANS]
    assert topics.recreated(again) == known(tmp_path).recreated(again) == []


def test_a_crash_before_the_ids_are_written_repeats_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = write_batch(tmp_path, 3, {PLANS: {"0": 8}, AIR: {"0": 5}})
    known(tmp_path).forget_recreated({PLANS: "a", AIR: "b"})
    replace = LocalFiles.replace

    def crash(self: LocalFiles, name: str, text: str) -> None:
        if not name.startswith("query"):
            raise OSError(28, "No space left on device")
        replace(self, name, text)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "replace", crash)
        with pytest.raises(UnavailableError, match="No space left on device"):
            known(tmp_path).forget_recreated({PLANS: "c", AIR: "b"})
    assert ends_of(last) == {AIR: {"0": 5}}
    assert known(tmp_path).forget_recreated({PLANS: "c", AIR: "b"}) == [PLANS]


def test_damaged_offsets_are_left_alone(tmp_path: Path) -> None:
    last = write_batch(tmp_path, 3, {PLANS: {"0": 8}})
    known(tmp_path).forget_recreated({PLANS: "a"})
    last.write_text("v1\n{}\n{cut")
    with pytest.raises(UnavailableError, match="the ids of topics can't be kept"):
        known(tmp_path).forget_recreated({PLANS: "b"})
    assert last.read_text() == "v1\n{}\n{cut"

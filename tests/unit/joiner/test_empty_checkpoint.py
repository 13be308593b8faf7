"""The warning about an empty checkpoint, where a joiner has worked before."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from tamis_joiner.checkpoint.location import LocalFiles
from tamis_joiner.checkpoint.start_checks import warn_if_emptied


def never() -> bool:
    raise AssertionError("a checkpoint with a batch needs no question")


def test_only_an_empty_checkpoint_of_an_earlier_joiner_is_told(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.write("tamis-joiner.json", '{"partitions": 2}')
    with capture_logs() as told:
        assert warn_if_emptied(files, lambda: True)
        assert not warn_if_emptied(files, lambda: False)
        (tmp_path / "query/offsets").mkdir(parents=True)
        assert warn_if_emptied(files, lambda: True)
        (tmp_path / "query/offsets/0").write_text("v1")
        assert not warn_if_emptied(files, never)
    assert [one["checkpoint"] for one in told] == [str(tmp_path)] * 2
    assert "restore its checkpoint" in told[0]["event"]

"""Permitted files of tables, in the settings and in the joiner.

Those of the registry are tested in tests/unit/registry/test_standing.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures.dict_state import DictState

from tamis.declarations.file_access import NO_ACCESS, UNRESTRICTED, FileAccess
from tamis.errors import InputError, RefusedError
from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.settings import TableSettings, load
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records

SQL = """
CREATE STREAM quotes (item INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE TABLE lots (id INT) WITH (path = '{path}');
CREATE ALERT graded AS SELECT q.item FROM quotes q, lots l WHERE q.item = l.id;
"""


def unable(path: Path, file_access: FileAccess, turn: Callable[[], object] = dict) -> dict[str, str]:
    """Why a joiner can't evaluate which alerts; `turn` is done between planning and reading."""
    document = encode_plan(first_plan(catalog_of(SQL.format(path=path))))
    turn()
    plans = [Records(PLANS, 0, [document], np.zeros(1, np.int64), np.zeros(1, np.int64))]
    output = Group.load(0, 1, DictState(), file_access=file_access).process(
        plans, [], DictState(), now=1, token="t"
    )
    assert output.frontier is not None
    return Frontier.from_bytes(output.frontier).unable


def test_a_joiner_reads_tables_from_where_the_setting_says_alone(tmp_path: Path) -> None:
    path = tmp_path / "lots.csv"
    path.write_text("id\n1\n")
    assert "TAMIS_TABLES isn't set" in unable(path, NO_ACCESS)["graded"]
    assert "is outside of the directories" in unable(path, FileAccess((str(tmp_path / "other"),)))["graded"]
    assert unable(path, FileAccess((str(tmp_path),))) == {}


def test_the_setting_alone_decides_what_a_registry_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAMIS_TABLES", raising=False)
    settings = load(TableSettings)
    assert (settings.registry, settings.joiner) == (NO_ACCESS, UNRESTRICTED)
    monkeypatch.setenv("TAMIS_TABLES", os.pathsep.join(["/srv/a", "", "/srv/b"]))
    settings = load(TableSettings)
    assert settings.registry == settings.joiner == FileAccess(("/srv/a", "/srv/b"))


def test_a_single_file_may_be_permitted(tmp_path: Path) -> None:
    for name in ("lots.csv", "lots.csv.old"):
        (tmp_path / name).write_text("id\n1\n")
    access = FileAccess((str(tmp_path / "lots.csv"),))
    assert access.resolve(str(tmp_path / "lots.csv"), "") == str((tmp_path / "lots.csv").resolve())
    for path in ("lots.csv.old", "lots.csv/../lots.csv.old", "."):
        with pytest.raises(RefusedError):
            access.resolve(str(tmp_path / path), "")


def test_a_link_may_lead_to_a_file_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "4711").write_text("id\n1\n")
    (tmp_path / "lots.csv").symlink_to("4711")
    assert unable(tmp_path / "lots.csv", FileAccess((str(tmp_path),))) == {}


def bad_paths(directory: Path) -> dict[str, str]:
    """Paths that name no regular file of a known size, and a word of what is said of each."""
    os.mkfifo(directory / "pipe.csv")
    (directory / "zero.csv").symlink_to("/dev/zero")
    (directory / "environ.csv").symlink_to("/proc/self/environ")
    (directory / "folder.csv").mkdir()
    return {
        "http://127.0.0.1:1/lots.csv": "is an address",
        "s3://bucket/lots.parquet": "is an address",
        "file:///srv/lots.csv": "is an address",
        "/dev/zero.csv": "No such file",
        str(directory / "pipe.csv"): "isn't a regular file",
        str(directory / "zero.csv"): "isn't a regular file",
        str(directory / "environ.csv"): "is empty",
        str(directory / "folder.csv"): "isn't a regular file",
    }


def test_a_table_is_a_regular_file_of_known_size_and_no_address(tmp_path: Path) -> None:
    for path, word in bad_paths(tmp_path).items():
        with pytest.raises(InputError, match=word):
            UNRESTRICTED.resolve(path, "table lots")
    (tmp_path / "lots.csv").write_text("id\n1\n")
    (tmp_path / "link.csv").symlink_to("lots.csv")
    assert UNRESTRICTED.resolve(str(tmp_path / "link.csv"), "") == str((tmp_path / "lots.csv").resolve())


def test_what_lies_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    file_access = FileAccess((str(tmp_path),))
    said = set()
    for path in ("/etc/passwd", "/dev/zero", "/nothing/there.csv"):
        with pytest.raises(RefusedError) as raised:
            file_access.resolve(path, "")
        said.add(str(raised.value).replace(path, "PATH"))
    assert len(said) == 1


def test_a_joiner_reads_no_pipe_in_a_table_s_place(tmp_path: Path) -> None:
    path = tmp_path / "lots.csv"
    path.write_text("id\n1\n")

    def turn() -> None:
        path.unlink()
        os.mkfifo(path)

    assert "isn't a regular file" in unable(path, UNRESTRICTED, turn)["graded"]

"""Which tables a fleet reads: settings and joiner (the registry: tests/unit/registry/test_standing.py)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.planning.build import first_plan
from tamis.planning.plan_json import encode_plan
from tamis.query.parse import catalog_of
from tamis.query.reach import ANYWHERE, NOWHERE, Reach
from tamis.settings import TableSettings, load
from tamis_joiner.core.decode import Records
from tamis_joiner.core.group import Group
from tamis_joiner.core.state import DictState

SQL = """
CREATE STREAM quotes (item INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE TABLE lots (id INT) WITH (path = '{path}');
CREATE ALERT graded AS SELECT q.item FROM quotes q, lots l WHERE q.item = l.id;
"""


def unable(path: Path, reach: Reach) -> dict[str, str]:
    """Why a joiner can't evaluate which alerts."""
    document = encode_plan(first_plan(catalog_of(SQL.format(path=path))))
    plans = [Records(PLANS, 0, [document], np.zeros(1, np.int64), np.zeros(1, np.int64))]
    output = Group.load(0, 1, DictState(), reach=reach).process(plans, [], DictState(), now=1, token="t")
    assert output.frontier is not None
    return Frontier.from_bytes(output.frontier).unable


def test_a_joiner_reads_tables_from_where_the_setting_says_alone(tmp_path: Path) -> None:
    path = tmp_path / "lots.csv"
    path.write_text("id\n1\n")
    assert "TAMIS_TABLES isn't set" in unable(path, NOWHERE)["graded"]
    assert "leads out" in unable(path, Reach((str(tmp_path / "other"),)))["graded"]
    assert unable(path, Reach((str(tmp_path),))) == {}


@pytest.mark.parametrize(
    ("host", "names", "unset"),
    [
        ("127.0.0.1", "", ANYWHERE),
        ("::1", " ", ANYWHERE),
        ("localhost", ",", ANYWHERE),
        ("127.0.0.1", "tamis.example.com", NOWHERE),  # by a proxy
        ("0.0.0.0", "", NOWHERE),
        ("registry", "", NOWHERE),
    ],
)
def test_the_setting_names_directories(
    monkeypatch: pytest.MonkeyPatch, host: str, names: str, unset: Reach
) -> None:
    monkeypatch.delenv("TAMIS_TABLES", raising=False)
    settings = load(TableSettings)
    assert (settings.registry(host, names), settings.joiner) == (unset, ANYWHERE)
    monkeypatch.setenv("TAMIS_TABLES", os.pathsep.join(["/srv/a", "", "/srv/b"]))
    settings = load(TableSettings)
    assert settings.registry(host, names) == settings.joiner == Reach(("/srv/a", "/srv/b"))


def test_a_link_may_lead_to_a_file_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "4711").write_text("id\n1\n")
    (tmp_path / "lots.csv").symlink_to("4711")
    assert unable(tmp_path / "lots.csv", Reach((str(tmp_path),))) == {}

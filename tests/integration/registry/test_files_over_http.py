"""Files of the registry's user: statements of clients read those of TAMIS_TABLES and no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.registry.registry_process import RegistryProcess, registry_process

SECRET = 7351948620
STREAM = "CREATE STREAM quotes (k INT KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts);\n"
TABLE = "CREATE TABLE {name} (id BIGINT) WITH (path = '{path}');\n"
# The secret is less than what a reading has.
JOIN = "CREATE ALERT {name} AS SELECT q.k, l.id FROM quotes q JOIN {table} l ON q.k < l.id;\n"
TOKENS = {"writer": "role: writer", "reader": "role: reader", "viewer": "role: reader, readings: true"}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A permitted directory and another one, both with secrets."""
    permitted, other = tmp_path / "permitted", tmp_path / "other"
    for directory in (permitted, other):
        directory.mkdir()
        (directory / "lots.csv").write_text(f"id\n{SECRET}\n")
        (directory / "values.csv").write_text(f"{SECRET}\n1\n{SECRET}\n")
    (permitted / "link.csv").symlink_to(other / "lots.csv")
    (permitted / "folder").symlink_to(other)
    return permitted, other


@pytest.fixture(params=["no", "some"])
def attacked(
    request: pytest.FixtureRequest, fresh: str, files: tuple[Path, Path], tmp_path: Path
) -> Iterator[tuple[RegistryProcess, list[str]]]:
    """A registry on loopback that may read no or some files, and texts that try to read others."""
    more = {"TAMIS_TABLES": str(files[0]) if request.param == "some" else ""}
    texts = list(attacks(*files))
    with registry_process(tmp_path, fresh, TOKENS, **more) as running:
        assert running.post("statements", "writer", content=STREAM).status_code == 200
        yield running, texts if request.param == "some" else texts[::4]


def attacks(permitted: Path, other: Path) -> Iterator[str]:
    """Texts that try to read a file that isn't permitted."""
    paths = [
        f"{other}/lots.csv",
        f"{permitted}/../other/lots.csv",
        f"{permitted}/link.csv",
        f"{permitted}/folder/lots.csv",
        f"{permitted}/*.csv",
        f"{other}/l*.csv",
        f"{{{other}/lots.csv}}",
        f"file://{other}/lots.csv",
        f"file:{other}/lots.csv",
        "http://127.0.0.1:9/lots.csv",
        "s3://bucket/lots.parquet",
        "/proc/self/environ",
        "/dev/stdin",
        "/etc/passwd",
        "registry.log",
        "~/.bashrc",
    ]
    for path in paths:
        yield TABLE.format(name="lots", path=path) + JOIN.format(name="q", table="lots")
        yield f"CREATE PATTERN p FROM '{path}';\n" + (
            "CREATE ALERT q AS SELECT k FROM quotes WHERE similar(k, 'p', 0.5);"
        )
    yield f"CREATE PATTERN p FROM '{other}';"
    for call in ("read_csv('{}')", "read_csv_auto('{}')", "read_text('{}')", "glob('{}')", "'{}'", '"{}"'):
        read = call.format(f"{other}/lots.csv")
        yield f"CREATE ALERT q AS SELECT * FROM {read};"
        yield f"CREATE ALERT q AS SELECT q.k, l.id FROM quotes q JOIN {read} l ON q.k < l.id;"
        yield f"CREATE ALERT q AS SELECT k FROM quotes WHERE k IN (SELECT id FROM {read});"
        yield f"CREATE FUNCTION f(v INT) RETURNS INT AS (SELECT max(id) FROM {read});"
    for words in (
        "COPY quotes FROM '{}'",
        "ATTACH '{}'",
        "INSTALL '{}'",
        "LOAD '{}'",
        "IMPORT DATABASE '{}'",
    ):
        yield words.format(f"{other}/lots.csv") + ";"


def test_no_client_reads_a_file_that_is_not_permitted(attacked: tuple[RegistryProcess, list[str]]) -> None:
    samples = {"quotes": [{"k": 1, "ts": 1_700_000_000_000}]}
    registry, texts = attacked
    for text in texts:
        for who in ("reader", "writer"):
            answers = [registry.post("explain", who, content=text)]
            answers.append(registry.post("try", who, json={"sql": text, "samples": samples}))
            if who == "writer":
                answers.append(registry.post("statements", who, content=text))
            for answer in answers:
                assert answer.status_code in (400, 422), (text, answer.text)
                assert str(SECRET) not in answer.text and "root:" not in answer.text, (text, answer.text)


def test_readers_name_no_files_and_use_tables_in_service(
    fresh: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    lots, again = (TABLE.format(name=name, path=files[0] / "lots.csv") for name in ("lots", "again"))
    alert, other = (JOIN.format(name=f"by_{name}", table=name) for name in ("lots", "again"))
    samples = {"quotes": [{"k": 1, "ts": 1_700_000_000_000}]}
    with registry_process(tmp_path, fresh, TOKENS, TAMIS_TABLES=str(files[0])) as registry:
        answer = registry.post("statements", "writer", content=STREAM + lots)
        assert answer.status_code == 200, answer.text
        for text in (again + other, lots.replace("BIGINT", "DOUBLE") + alert):
            for who in ("reader", "viewer"):
                for path, body in (
                    ("explain", {"content": text}),
                    ("try", {"json": {"sql": text, "samples": samples}}),
                ):
                    refused = registry.post(path, who, **body)
                    assert refused.status_code in (409, 422), (path, text, refused.text)
                    assert str(SECRET) not in refused.text
        pattern = f"CREATE PATTERN p FROM '{files[0]}/values.csv';"
        refused = registry.post("explain", "reader", content=pattern)
        assert refused.status_code == 400 and "may name files" in refused.text, refused.text
        assert registry.post("explain", "writer", content=pattern).status_code == 200
        # The table in service is used, and its rows are shown to those who may see readings.
        for text in (alert, lots + alert):
            assert registry.post("explain", "reader", content=text).json()["queries"][0]["accepted"]
            trial = {"sql": text, "samples": samples}
            refused = registry.post("try", "reader", json=trial)
            assert refused.status_code == 422 and "readings: true" in refused.json()["hint"], refused.text
            for who in ("viewer", "writer"):
                assert registry.post("try", who, json=trial).json()["rows"] == [[1, SECRET]]

"""Spark's properties for a cluster, and checkpoints on other file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import InputError
from tamis_joiner.checkpoint.location import LocalFiles, Location
from tamis_joiner.environment import contents
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark.authentication import AUTHENTICATION, SECRET, check_secret, write_file
from tamis_joiner.spark.cluster import cluster_properties, fetches_jars, read_properties
from tamis_joiner.spark.session import collector

JARS = "/opt/tamis/jars/spark"


def properties(**settings: object) -> dict[str, str]:
    given = JoinerSettings.model_validate({"executor_jars": JARS, **settings})
    return cluster_properties(
        given, {"TAMIS_FUNCTIONS": "plant", "NUMBA_CACHE_DIR": "/var/cache/tamis", "HOME": "/home/tamis"}
    )


def test_a_local_master_gets_no_properties_of_a_cluster() -> None:
    assert properties(master="local[4]", driver_host="joiner", executor_memory="1g") == {}


def test_the_driver_listens_where_executors_reach_it() -> None:
    found = properties(
        master="spark://spark:7077", driver_host="joiner", driver_port=7078, block_manager_port=7079
    )
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "joiner"
    assert (found["spark.driver.port"], found["spark.driver.blockManager.port"]) == ("7078", "7079")


def test_the_driver_may_listen_at_another_address_than_executors_use() -> None:
    found = properties(master="spark://spark:7077", driver_host="proxy.example", driver_bind="10.0.0.7")
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("proxy.example", "10.0.0.7")


def test_executors_get_their_size_and_the_environment_of_functions() -> None:
    found = properties(master="k8s://https://kubernetes", executors=3, executor_memory="3g", executor_cores=2)
    assert found["spark.executor.instances"] == "3"
    assert found["spark.executor.memory"] == "3g"
    assert found["spark.executor.cores"] == "2"
    assert "spark.cores.max" not in found
    assert found["spark.executorEnv.TAMIS_FUNCTIONS"] == "plant"
    assert "spark.executorEnv.HOME" not in found


def test_a_standalone_master_limits_executors_by_their_cores() -> None:
    found = properties(master="spark://spark:7077", executors=3, executor_cores=2)
    assert (found["spark.cores.max"], found["spark.executor.cores"]) == ("6", "2")


def test_executors_may_have_their_jars_elsewhere() -> None:
    found = properties(master="spark://spark:7077")
    assert found["spark.executor.extraClassPath"] == f"{JARS}/*"
    assert "spark.jars" not in found


def test_machines_with_other_paths_get_the_jars_from_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_JARS", str(tmp_path))
    (tmp_path / "spark").mkdir()
    for name in ("kafka-clients-1.jar", "connector-2.jar"):
        (tmp_path / "spark" / name).touch()
    jars = [f"{tmp_path}/spark/connector-2.jar", f"{tmp_path}/spark/kafka-clients-1.jar"]
    same = properties(master="spark://spark:7077", executor_jars=None)
    assert same["spark.executor.extraClassPath"] == ":".join(jars)
    assert "spark.jars" not in same
    other = properties(master="spark://spark:7077", executor_jars=None, environment="hdfs://node/env.tar.gz")
    assert other["spark.jars"] == ",".join(jars)
    assert "spark.executor.extraClassPath" not in other


@pytest.mark.parametrize(
    ("settings", "fetches"),
    [
        ({"master": "local[2]", "environment": "/env.tar.gz"}, False),
        ({"master": "spark://spark:7077", "environment": "/env.tar.gz"}, True),
        ({"master": "spark://spark:7077", "executor_python": "/opt/python"}, True),
        ({"master": "spark://spark:7077", "executor_python": "/opt/python", "executor_jars": JARS}, False),
        ({"master": "spark://spark:7077"}, False),
    ],
)
def test_executors_fetch_jars_where_they_have_other_paths(settings: dict[str, str], fetches: bool) -> None:
    assert fetches_jars(JoinerSettings.model_validate(settings)) is fetches


def test_a_packed_environment_is_unpacked_by_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "env.tar.gz"
    with pytest.raises(InputError, match=r"env\.tar\.gz: there is no packed environment"):
        properties(master="spark://spark:7077", environment=str(archive))
    monkeypatch.setattr(
        contents, "check_code", lambda archive, environment: None
    )  # test_environment.py has it
    archive.touch()
    for given, uri in (
        (str(archive), archive.as_uri()),
        ("hdfs://node/env.tar.gz", "hdfs://node/env.tar.gz"),
    ):
        found = properties(master="spark://spark:7077", environment=given)
        assert found["spark.archives"] == f"{uri}#tamis-environment"
        assert found["spark.files.io.connectionTimeout"] == "900s"


@pytest.mark.parametrize(
    "setting", [{"environment": "hdfs://node/env.tar.gz"}, {"executor_python": "/opt/python"}]
)
def test_executors_with_other_files_get_no_paths_of_this_machine(setting: dict[str, str]) -> None:
    same = properties(master="spark://spark:7077")
    assert same["spark.executorEnv.NUMBA_CACHE_DIR"] == "/var/cache/tamis"
    other = properties(master="spark://spark:7077", **setting)
    assert "spark.executorEnv.NUMBA_CACHE_DIR" not in other
    assert other["spark.executorEnv.TAMIS_FUNCTIONS"] == "plant"


def test_more_properties_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(
        "# comment\nspark.kubernetes.namespace  tamis\n\nspark.hadoop.fs.s3a.endpoint=http://s3\n"
    )
    assert read_properties(file, {}) == {
        "spark.kubernetes.namespace": "tamis",
        "spark.hadoop.fs.s3a.endpoint": "http://s3",
    }
    assert read_properties(None, {}) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spark.ui.enabled true", r"spark\.conf:1: the joiner itself sets spark\.ui\.enabled"),
        ("\nmaster yarn", r"spark\.conf:2: a property of Spark is expected"),
        ("spark.name.without.value", r"spark\.conf:1: a property of Spark is expected"),
    ],
)
def test_a_wrong_property_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_properties(file, {"spark.ui.enabled": "false"})


def test_a_missing_file_of_properties_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.conf"):
        read_properties(tmp_path / "nothing.conf", {})


def test_a_standalone_cluster_needs_a_secret_of_its_operator(tmp_path: Path) -> None:
    standalone = JoinerSettings(master="spark://spark:7077")
    with pytest.raises(InputError, match=r"TAMIS_JOINER_SPARK_CONF: a standalone master needs spark\.auth"):
        check_secret(standalone, {})
    check_secret(standalone, {"spark.authenticate": "false"})
    # Spark itself makes that of others.
    for master in ("local[2]", "k8s://https://kubernetes"):
        check_secret(JoinerSettings(master=master), {})
    file = tmp_path / "spark.conf"
    write_file(file)
    assert file.stat().st_mode & 0o777 == 0o400
    made = read_properties(file, {})
    assert made.keys() == AUTHENTICATION.keys() | {SECRET} and len(made[SECRET]) > 40
    check_secret(standalone, made)
    write_file(file)
    assert read_properties(file, {}) == made


@pytest.mark.parametrize(
    "uri", ["hdfs://namenode:8020/joiner", "s3a://bucket/joiner", "viewfs://tamis/joiner"]
)
def test_a_uri_is_given_to_spark_as_it_is(uri: str) -> None:
    location = Location.parse(f"{uri}/")
    assert (location.uri, location.path) == (uri, None)
    assert location.child("query") == Location(f"{uri}/query", None)


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    location = Location.parse("joiner")
    assert location.path == tmp_path / "joiner"
    assert location.child("query").uri == str(tmp_path / "joiner" / "query")


def test_files_that_are_missing_are_no_errors(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "new")
    assert (files.names("query/offsets"), files.read("tamis-joiner.json")) == ([], None)
    files.write("tamis-joiner.json", "{}")
    assert files.read("tamis-joiner.json") == "{}"


@pytest.mark.parametrize(
    ("settings", "options", "serial"),
    [
        ({}, "", True),
        ({}, "-XX:+UseStringDeduplication", True),
        ({}, "-Xss1m -XX:+UseG1GC", False),
        ({"memory": "4g"}, "", False),
        ({"master": "spark://other:7077"}, "", False),
    ],
)
def test_the_serial_collector_is_for_a_small_local_heap_if_nobody_chose_one(
    settings: dict[str, str], options: str, *, serial: bool
) -> None:
    found = collector(JoinerSettings.model_validate(settings), {"JAVA_TOOL_OPTIONS": options})
    assert bool(found) is serial

"""Secrets from files: `TAMIS_X_FILE` for every secret setting, and `${NAME}` in YAML files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr
from pydantic_settings import SettingsConfigDict

from tamis.errors import InputError
from tamis.settings import KafkaSettings, load, secret_files
from tamis.settings.secret_files import MOST_BYTES, EnvironmentSettings
from tamis.settings.yaml_file import Secret, read_yaml


class Own(EnvironmentSettings):
    model_config = SettingsConfigDict(env_prefix="TAMIS_OWN_", frozen=True)

    password: SecretStr | None = None
    always: SecretStr = SecretStr("default")
    file: str = "plain"


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of `password`, which has the mode that it should have."""
    path = tmp_path / "password"
    path.write_bytes(b"hush\n")
    path.chmod(0o400)
    monkeypatch.setenv("TAMIS_OWN_PASSWORD_FILE", str(path))
    return path


def test_a_secret_is_read_from_its_file_without_the_line_end(
    secret: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    always = secret.with_name("always")
    always.write_bytes(b" two words \r\n")
    always.chmod(0o440)
    monkeypatch.setenv("TAMIS_OWN_ALWAYS_FILE", str(always))
    settings = load(Own)
    assert settings.password is not None and settings.password.get_secret_value() == "hush"
    assert settings.always.get_secret_value() == " two words "
    assert "hush" not in repr(settings)
    assert caplog.text == ""


def test_settings_that_are_not_secret_have_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_OWN_FILE_FILE", "/nowhere")
    monkeypatch.setenv("TAMIS_OWN_FILE", "given")
    assert load(Own).file == "given"


def test_kafka_s_secrets_may_be_in_files(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": "edge",
        "SASL_PASSWORD_FILE": str(secret),
    }.items():
        monkeypatch.setenv(f"TAMIS_KAFKA_{name}", value)
    assert load(KafkaSettings).client_config()["sasl.password"] == "hush"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't read the file with the secret: No such file or directory; name a file that"),
        (b"", "the file is empty; write the secret into it"),
        (b"\n", "the file is empty"),
        (b"\xff\xfehush", "the secret in the file is not UTF-8"),
        (b"x" * (MOST_BYTES + 1), f"the file has more than {MOST_BYTES} bytes; name the file that has"),
    ],
)
def test_a_file_without_a_secret_is_refused_and_named(secret: Path, content: bytes | None, said: str) -> None:
    secret.unlink()
    if content is not None:
        secret.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(Own)
    assert str(caught.value).startswith(f"TAMIS_OWN_PASSWORD_FILE={secret}: {said}")
    assert "hush" not in str(caught.value) and caught.value.__cause__ is None


def test_a_directory_is_no_secret(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_OWN_PASSWORD_FILE", str(secret.parent))
    with pytest.raises(InputError, match="can't read the file with the secret: Is a directory"):
        load(Own)


def test_a_secret_is_set_once(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_OWN_PASSWORD", "other")
    with pytest.raises(
        InputError, match="TAMIS_OWN_PASSWORD and TAMIS_OWN_PASSWORD_FILE are both set"
    ) as caught:
        load(Own)
    assert "other" not in str(caught.value)
    monkeypatch.setenv("TAMIS_OWN_PASSWORD", "")  # as in a Compose file with an unset variable
    assert load(Own).password == SecretStr("hush")
    monkeypatch.setenv("TAMIS_OWN_PASSWORD_FILE", "")
    monkeypatch.setenv("TAMIS_OWN_PASSWORD", "other")
    assert load(Own).password == SecretStr("other")


def test_a_secret_that_everyone_may_read_is_warned_of(secret: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret.chmod(0o444)
    with caplog.at_level(logging.WARNING):
        assert load(Own).password == SecretStr("hush")
    assert f"{secret}: every user of this system may read the secret" in caplog.text
    assert "hush" not in caplog.text


class Sink(BaseModel):
    token: Secret | None = None


def test_references_in_yaml_take_the_variable_or_its_file(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "sink.yaml"
    config.write_text("token: ${HOOK}\n")
    with pytest.raises(
        InputError, match=r"line 1: token: .*variable HOOK is not set; set it, or set HOOK_FILE"
    ):
        read_yaml(config, Sink, "example.yaml")
    monkeypatch.setenv("HOOK_FILE", str(secret))
    assert read_yaml(config, Sink, "example.yaml").token == SecretStr("hush")
    monkeypatch.setenv("HOOK_FILE", str(tmp_path / "missing"))
    with pytest.raises(InputError, match=r"HOOK_FILE=.*missing: can't read the file with the secret"):
        read_yaml(config, Sink, "example.yaml")
    monkeypatch.delenv("HOOK_FILE")
    monkeypatch.setenv("HOOK", "given")
    assert read_yaml(config, Sink, "example.yaml").token == SecretStr("given")


@pytest.fixture
def fifo(secret: Path) -> Path:
    """A named pipe in the place of the secret's file."""
    secret.unlink()
    os.mkfifo(secret, 0o600)
    return secret


def written_later(path: Path, *parts: bytes) -> threading.Thread:
    """A thread that writes parts into a pipe, each of them after a moment, and closes it."""

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for part in parts:
                time.sleep(0.1)
                file.write(part)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_a_pipe_gives_its_secret_once_its_writer_has_closed_it(fifo: Path) -> None:
    writer = written_later(fifo, b"hu", b"sh\n")
    assert load(Own).password == SecretStr("hush")
    writer.join()
    assert load(Own).password == SecretStr("hush"), "a second reference to the same pipe"


def test_a_pipe_without_a_writer_ends_the_start_in_time(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "SECONDS", 0.2)
    said = f"TAMIS_OWN_PASSWORD_FILE={fifo}: can't read the file with the secret: the pipe or device did not "
    began = time.monotonic()
    with pytest.raises(InputError) as caught:
        load(Own)
    assert str(caught.value).startswith(
        f"{said}give all its content within 0.2 s; name a regular file, or a pipe"
    )
    # A writer that doesn't close the pipe could still add to the secret.
    with fifo.open("r+b", buffering=0) as writer:
        writer.write(b"hush")
        with pytest.raises(InputError) as caught:
            load(Own)
    assert str(caught.value).startswith(said) and "hush" not in str(caught.value)
    assert time.monotonic() - began < 10


def test_a_pipe_that_is_closed_without_a_secret_is_empty(fifo: Path) -> None:
    writer = written_later(fifo, b"")
    with pytest.raises(InputError, match="the file is empty"):
        load(Own)
    writer.join()


@pytest.mark.parametrize(
    ("device", "said"), [("/dev/zero", f"more than {MOST_BYTES} bytes"), ("/dev/null", "the file is empty")]
)
def test_a_device_has_no_secret(device: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_OWN_PASSWORD_FILE", device)
    with pytest.raises(InputError, match=said):
        load(Own)


def test_a_silent_terminal_ends_the_start_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "SECONDS", 0.2)
    leader, follower = os.openpty()
    monkeypatch.setenv("TAMIS_OWN_PASSWORD_FILE", os.ttyname(follower))
    try:
        with pytest.raises(InputError, match=r"did not give all its content within 0\.2 s"):
            load(Own)
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize("wait", ["", "sleep 0.3; "])
def test_a_process_substitution_gives_a_secret(wait: str) -> None:
    script = "from tamis.settings.secret_files import environment_secret as s; print(s('TAMIS_OWN_PASSWORD'))"
    command = f'TAMIS_OWN_PASSWORD_FILE=<({wait}echo hush) exec {sys.executable} -P -c "$0"'
    done = subprocess.run(
        ["bash", "-c", command, script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "hush\n"


def test_a_configuration_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "SECONDS", 0.2)
    with pytest.raises(InputError, match="/dev/zero: the file has more than 16,777,216 bytes"):
        read_yaml(Path("/dev/zero"), Sink, "example.yaml")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        InputError, match=r"can't read the configuration: the pipe or device did not give all"
    ):
        read_yaml(tmp_path / "pipe", Sink, "example.yaml")

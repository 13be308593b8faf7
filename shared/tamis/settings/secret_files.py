"""Secrets from files: the variable `NAME_FILE` has the path of the file with the secret `NAME`.

Files are read with limits: their size, and the time that the writer of a pipe may take.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import stat
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from tamis.errors import InputError

# A command in a process substitution, such as one that asks a vault, may need a network.
SECONDS = 30.0
PIPE_HINT = "name a regular file, or a pipe whose writer writes everything and closes it"
_CHUNK = 2**20


class Content(NamedTuple):
    """The content of a file, and the bits of its mode."""

    bytes: bytes
    mode: int


def read_limited(path: Path, most: int, seconds: float | None = None) -> Content:
    """The content of a file, a pipe or a device; of one with more than `most` bytes, the first `most` + 1.

    `seconds` limits the wait for the writer of a pipe; by default `SECONDS`. Without a limit, a pipe that has
    no writer, or whose writer doesn't close it, would stop the caller for ever.

    Raises OSError, and TimeoutError if the content isn't complete in time.
    """
    seconds = SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    # O_NOCTTY: a terminal that a service without one opens would become its controlling terminal.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(file).st_mode
        content = bytearray()
        while len(content) <= most:
            try:
                chunk = os.read(file, min(_CHUNK, most + 1 - len(content)))
            except BlockingIOError:  # a writer has the pipe open, and has written nothing more yet
                _wait(file, deadline)
                continue
            if chunk:
                content += chunk
            elif content or not stat.S_ISFIFO(mode) or not _wait(file, deadline) & select.POLLIN:
                break  # the end of the file, or a first writer that closed the pipe without writing
        return Content(bytes(content), mode)
    except TimeoutError:
        reason = f"the pipe or device did not give all its content within {seconds:g} s"
        raise TimeoutError(errno.ETIMEDOUT, reason, str(path)) from None
    finally:
        os.close(file)


def _wait(file: int, deadline: float) -> int:
    """Wait for content or for the end of a pipe; returns the events of poll. Raises TimeoutError."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    if not events:
        raise TimeoutError
    return events[0][1]


SUFFIX = "_FILE"
# The longest secrets are signed tokens of a few kilobytes. A larger file is not the one that was meant.
MOST_BYTES = 64 * 1024

# Commands don't configure structlog, which would then write to standard output. This logger writes to
# standard error, and becomes a part of the service's log once that is configured.
_log = logging.getLogger("tamis.settings")


def environment_secret(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The secret `name` from the environment: the variable's value, or the content of the file that the
    variable `<name>_FILE` names. None if neither is set.

    Raises InputError if both are set, or the file can't be used.

    >>> environment_secret("MQTT_PASSWORD", {"MQTT_PASSWORD": "hush"})
    'hush'
    """
    path = environment.get(name + SUFFIX)
    if not path:  # Compose files often set a variable to nothing
        return environment.get(name)
    if environment.get(name):
        raise InputError(
            f"{name} and {name}{SUFFIX} are both set", where="environment", hint="set one of the two"
        )
    return read_secret(Path(path), f"{name}{SUFFIX}={path}")


def read_secret(path: Path, where: str) -> str:
    """The secret in a file, without line ends at its end. Messages begin with `where`. A pipe must give its
    content in a limited time.

    Raises InputError if there is no secret. Logs a warning if all users of the system may read the file.
    """
    try:
        found = path.stat()
        is_pipe = stat.S_ISFIFO(found.st_mode)
        content, mode = _read_once(path, found.st_ino) if is_pipe else read_limited(path, MOST_BYTES)
        text = content.decode().rstrip("\r\n")
    except TimeoutError as error:
        raise InputError(
            f"can't read the file with the secret: {error.strerror}", where=where, hint=PIPE_HINT
        ) from None
    except OSError as error:
        raise InputError(
            f"can't read the file with the secret: {error.strerror}",
            where=where,
            hint="name a file that this service may read",
        ) from None
    except UnicodeDecodeError:  # its message has bytes of the secret
        raise InputError("the secret in the file is not UTF-8", where=where) from None
    if len(content) > MOST_BYTES:
        raise InputError(
            f"the file has more than {MOST_BYTES} bytes",
            where=where,
            hint="name the file that has the secret and nothing else",
        )
    if not text:
        raise InputError("the file is empty", where=where, hint="write the secret into it")
    if mode & stat.S_IROTH:
        _log.warning(
            "%s: every user of this system may read the secret; take that right away (chmod o-r)", where
        )
    return text


@lru_cache(maxsize=100)
def _read_once(path: Path, _: int) -> Content:
    """The content of the pipe with this path and inode. It can be read only once, and several sources of an
    edge may refer to the same secret.
    """
    return read_limited(path, MOST_BYTES)


class SecretFiles(PydanticBaseSettingsSource):
    """Settings source that reads every secret field from the file named by the variable
    `<PREFIX><FIELD>_FILE`.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        if not _is_secret(field):
            return None, field_name, False
        variable = f"{self.config.get('env_prefix', '')}{field_name}".upper()
        return environment_secret(variable), field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in found.items() if value is not None}


class EnvironmentSettings(BaseSettings):
    """Base class of settings from the environment. Its secrets may be in files."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, SecretFiles(settings_cls), env_settings


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)

"""Protection of a service's HTTP: tokens and TLS, required as soon as other machines can reach it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import SecretStr
from pydantic_settings import SettingsConfigDict

from tamis.errors import InputError
from tamis.settings.secret_files import EnvironmentSettings
from tamis.settings.token_file import TokenFile
from tamis.telemetry.logs import get_logger
from tamis.web.tls import CertificateFiles, Certificates, is_loopback

_log = get_logger("http")

# A token that was removed from the file is valid for so many seconds at most.
SECONDS_BETWEEN_LOOKS = 1.0


class HttpSettings(EnvironmentSettings):
    """Tokens and TLS of one service. A subclass sets the prefix of the variables."""

    # Compose files often set a variable to nothing.
    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True)

    tokens_file: Path | None = None
    """File of [tokens](security.md#tokens). Required if the service listens beyond loopback."""
    tls: Literal["proxy"] | None = None
    """`proxy` says that a proxy in front of the service terminates TLS; the service then needs no
    certificate.
    """
    tls_certificate: Path | None = None
    """PEM file of the service's certificate. Required beyond loopback, unless a proxy terminates TLS."""
    tls_key: Path | None = None
    """PEM file of the key of this certificate."""
    tls_key_password: SecretStr | None = None
    """Password of this key, if it is encrypted."""

    def setting(self, field: str) -> str:
        """The name by which the user sets a field, for messages."""
        return f"{self.model_config.get('env_prefix', '')}{field}".upper()


@dataclass(frozen=True)
class HttpSecurity:
    """The tokens and the certificate of a server; None for what it doesn't use."""

    tokens: TokenFile | None = None
    certificates: Certificates | None = None

    def watch(self) -> None:
        """Read the files again when they change, in a thread of the background."""
        watched = [_Watched((source.path,), source.reload) for source in (self.tokens,) if source is not None]
        if self.certificates is not None:
            files = self.certificates.files
            watched.append(_Watched((files.certificate, files.key), self.certificates.reload))
        if watched:
            threading.Thread(target=_watch, args=(watched,), name="http-files", daemon=True).start()


def http_security(settings: HttpSettings, host: str) -> HttpSecurity:
    """The protection of a server that listens on `host`.

    Raises InputError if files can't be used, or if other machines can reach the server and it has no tokens
    or no TLS.
    """
    tokens, certificate, key, tls = map(
        settings.setting, ("tokens_file", "tls_certificate", "tls_key", "tls")
    )
    missing = []
    if not is_loopback(host) and settings.tokens_file is None:
        missing.append(f"set {tokens} to a file of tokens (`tamis token` makes them)")
    files = None
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InputError(
            "TLS needs both a certificate and its key",
            where=f"{certificate}, {key}",
            hint="set both",
        )
    if settings.tls_certificate is not None and settings.tls_key is not None:
        if settings.tls == "proxy":
            raise InputError(
                f"{tls} says that a proxy terminates TLS, but there is a certificate, too",
                where=certificate,
                hint="set one of the two",
            )
        password = settings.tls_key_password
        files = CertificateFiles(
            settings.tls_certificate, settings.tls_key, password.get_secret_value() if password else None
        )
    elif not is_loopback(host) and settings.tls != "proxy":
        missing.append(
            f"set {certificate} and {key} (PEM files), or {tls} to 'proxy' if a proxy in front terminates TLS"
        )
    if missing:
        raise InputError(
            "other machines could use this service without a token or without TLS",
            where=f"the address {host or '(all)'}",
            hint=f"{'; '.join(missing)}; or listen on 127.0.0.1",
        )
    return HttpSecurity(
        TokenFile(settings.tokens_file) if settings.tokens_file is not None else None,
        Certificates(files) if files is not None else None,
    )


class _Watched:
    """Files that are read again together."""

    def __init__(self, paths: tuple[Path, ...], reload: Callable[[], None]) -> None:
        self._paths, self._reload = paths, reload
        # They may have changed since the service read them, so the first look reads them in any case.
        self._seen: list[tuple[int, int, int] | None] | None = None

    def look(self) -> None:
        """Read the files again if one has changed since the last look."""
        state, first = self._state(), self._seen is None
        if state == self._seen:
            return
        self._seen = state
        names = ", ".join(map(str, self._paths))
        try:
            for path in self._paths:
                _refuse_pipe(path)
            self._reload()
        except InputError as error:
            _log.error("a changed file can't be used; its old content stays in force", error=str(error))
        else:
            if not first:
                _log.info("a changed file is in force", files=names)

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_identity(path) for path in self._paths]


def _refuse_pipe(path: Path) -> None:
    """Raise InputError if a path names a pipe or a device.

    Its reader could wait for ever, and later changes would not count.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError("this is not a regular file", where=str(path), hint="replace it by a file")


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    # A secret of Kubernetes is replaced by another file, and may have the same size and time.
    return found.st_ino, found.st_size, found.st_mtime_ns


def _watch(watched: list[_Watched]) -> None:
    never = threading.Event()
    while True:
        never.wait(SECONDS_BETWEEN_LOOKS)
        for files in watched:
            files.look()

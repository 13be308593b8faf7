"""TLS contexts: of a server, whose certificate can be renewed while it runs, and of clients."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import InputError


def is_loopback(host: str) -> bool:
    """True if only processes of this machine can reach a server that listens on `host`.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", "10.0.0.7")]
    [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class CertificateFiles:
    """PEM files: a certificate with those of intermediate authorities, and its key."""

    certificate: Path
    key: Path
    key_password: str | None = None

    def context(self) -> ssl.SSLContext:
        """A new TLS context of a server, for TLS 1.2 and later. Raises InputError as `load_into` does."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let a context present this certificate.

        Raises InputError if the files can't be used; the message never has a secret.
        """
        try:
            # Without a function, OpenSSL would ask for the password of an encrypted key on the terminal.
            context.load_cert_chain(self.certificate, self.key, lambda: self.key_password or "")
        except ssl.SSLError as error:
            # OpenSSL gives no reason for a wrong password, and none for texts that are not PEM.
            locked = not error.reason and b"ENCRYPTED" in self.key.read_bytes()
            why = "the password of the key is missing or wrong" if locked else error.reason or "no PEM files"
            raise InputError(
                f"the certificate and the key can't be used: {why}",
                where=f"{self.certificate}, {self.key}",
                hint="set the password of the key"
                if locked
                else "name the PEM files of the certificate and of its own key",
            ) from None
        except OSError as error:
            unreadable = next(
                (path for path in (self.certificate, self.key) if not os.access(path, os.R_OK)), self.key
            )
            raise InputError(
                f"the file can't be read: {error.strerror}",
                where=str(unreadable),
                hint="name a readable PEM file",
            ) from None

    def __repr__(self) -> str:
        return f"CertificateFiles({str(self.certificate)!r}, {str(self.key)!r})"


class Certificates:
    """The TLS context of a server by its files now. New connections use the newest one."""

    def __init__(self, files: CertificateFiles) -> None:
        """Raises InputError if the files can't be used."""
        self.files = files
        self._context = files.context()

    def current(self) -> ssl.SSLContext:
        """The context of a new connection."""
        return self._context

    def reload(self) -> None:
        """Read the files again. Raises InputError if they can't be used, and keeps the context then."""
        self._context = self.files.context()


def client_context(
    ca: Path | None, *, where: str, certificate: CertificateFiles | None = None
) -> ssl.SSLContext:
    """The TLS context of a client that trusts the authorities of a PEM file, or without one those of the
    system. `certificate` is the client's own.

    Raises InputError if the files can't be used; `where` names the setting of `ca`.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:  # also of TLS
        why = "it has no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise InputError(
            f"the file of the authority can't be used: {why}",
            where=f"{where}={ca}",
            hint="name the PEM file of the authority that signed the server's certificate",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        certificate.load_into(context)
    return context

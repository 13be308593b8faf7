"""Certificates for TLS on this machine: an authority of its own, made by the command `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import UnavailableError

# They are made anew at each start of a fleet, and by tests.
DAYS = 30
_EXTENSIONS = """\
[server]
subjectAltName = IP:127.0.0.1, DNS:localhost
extendedKeyUsage = serverAuth, clientAuth
[client]
extendedKeyUsage = clientAuth
"""


@dataclass(frozen=True)
class Certificate:
    """The PEM files of one certificate: the certificate, its key, and both in one file for Kafka's broker."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """A certificate authority whose files are in `directory`, which only its owner can read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.certificate = directory / "ca.pem"
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        if not self.certificate.exists():
            (directory / "extensions.cnf").write_text(_EXTENSIONS, encoding="utf-8")
            _openssl(
                *("req", "-x509", *_NEW_KEY, "-days", str(DAYS), "-subj", "/CN=tamis-authority"),
                *("-keyout", str(directory / "ca.key"), "-out", str(self.certificate)),
            )

    def issue(self, name: str, kind: str = "client") -> Certificate:
        """The certificate with the subject `CN=name`, made where it doesn't exist. `kind`: "client", or
        "server" for 127.0.0.1. Raises UnavailableError without the command `openssl`.
        """
        key, request, pem, both = (self.directory / f"{name}.{suffix}" for suffix in _SUFFIXES)
        if not both.exists():
            subject = ("-subj", f"/CN={name}")
            _openssl("req", "-new", *_NEW_KEY, *subject, "-keyout", str(key), "-out", str(request))
            _openssl(
                *("x509", "-req", "-in", str(request), "-out", str(pem), "-days", str(DAYS)),
                *("-CA", str(self.certificate), "-CAkey", str(self.directory / "ca.key"), "-CAcreateserial"),
                *("-extfile", str(self.directory / "extensions.cnf"), "-extensions", kind),
            )
            both.write_text(key.read_text(encoding="utf-8") + pem.read_text(encoding="utf-8"))
        return Certificate(pem, key, both)


_SUFFIXES = ("key", "csr", "pem", "both.pem")
# Elliptic curves: an RSA key takes up to a second. No password: the broker would need it in its settings.
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: str) -> None:
    command = shutil.which("openssl")
    if command is None:
        raise UnavailableError(
            "the command `openssl` is missing",
            where="PATH",
            hint="install OpenSSL: it makes the certificates",
        )
    done = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"openssl {arguments[0]} failed: {done.stderr.strip()}", where=arguments[-1])

"""Certificates for TLS on this machine: an authority of its own, made by the command `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import UnavailableError

DAYS = 365
# An authority that ends within so many days is replaced when it is next used, with all its certificates.
RENEW_DAYS = 30
HERE = "IP:127.0.0.1, DNS:localhost"

# Python 3.13 refuses certificates without the identifiers of their keys.
_IDENTIFIERS = "subjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n"
_EXTENSIONS = f"""\
[server]
{_IDENTIFIERS}extendedKeyUsage = serverAuth, clientAuth
[client]
{_IDENTIFIERS}extendedKeyUsage = clientAuth
"""
_SUFFIXES = ("key", "csr", "pem", "both.pem")
# Elliptic curves: an RSA key takes up to a second. No password: the broker would need it in its settings.
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Certificate:
    """The PEM files of one certificate: the certificate, its key, and both in one file for Kafka's broker."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """A certificate authority whose files are in `directory`. Only the owner can read them."""

    def __init__(self, directory: Path) -> None:
        """Raises UnavailableError without the command `openssl`."""
        self.directory = directory
        self.certificate = directory / "ca.pem"
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        if not self.certificate.exists() or self._ends_soon():
            self._make()

    def _ends_soon(self) -> bool:
        end = ("-noout", "-checkend", str(RENEW_DAYS * 24 * 3600))
        return _run("x509", "-in", str(self.certificate), *end).returncode != 0

    def _make(self) -> None:
        for signed in self.directory.glob(f"*.{_SUFFIXES[-1]}"):
            signed.unlink()
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", str(DAYS), "-subj", "/CN=tamis-authority"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-keyout", str(self.directory / "ca.key"), "-out", str(self.certificate)),
        )

    def issue(self, name: str, kind: str = "client", names: str = HERE) -> Certificate:
        """The certificate with the subject `CN=name`, made where it doesn't exist. `kind`: "client", or
        "server" for the `names`, which are in the notation of OpenSSL.
        """
        key, request, pem, both = (self.directory / f"{name}.{suffix}" for suffix in _SUFFIXES)
        if not both.exists():
            extensions = self.directory / f"{name}.cnf"
            alternatives = f"[server]\nsubjectAltName = {names}\n" if kind == "server" else ""
            _write(extensions, alternatives + _EXTENSIONS)
            subject = ("-subj", f"/CN={name}")
            _openssl("req", "-new", *_NEW_KEY, *subject, "-keyout", str(key), "-out", str(request))
            _openssl(
                *("x509", "-req", "-in", str(request), "-out", str(pem), "-days", str(DAYS)),
                *("-CA", str(self.certificate), "-CAkey", str(self.directory / "ca.key"), "-CAcreateserial"),
                *("-extfile", str(extensions), "-extensions", kind),
            )
            _write(both, key.read_text(encoding="utf-8") + pem.read_text(encoding="utf-8"))
        return Certificate(pem, key, both)


def _write(path: Path, text: str) -> None:
    path.touch(0o600)
    path.write_text(text, encoding="utf-8")


def _openssl(*arguments: str) -> None:
    done = _run(*arguments)
    if done.returncode:
        raise UnavailableError(f"openssl {arguments[0]} failed: {done.stderr.strip()}", where=arguments[-1])


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run openssl. Only the owner can read the files that it makes."""
    command = shutil.which("openssl")
    if command is None:
        raise UnavailableError(
            "the command `openssl` is missing",
            where="PATH",
            hint="install OpenSSL: it makes the certificates",
        )
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False, umask=0o077)

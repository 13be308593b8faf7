"""Makes the certificates and passwords of docker-compose.secure.yml, in deploy/compose/secrets.

python3 deploy/compose/make_secrets.py needs Python and the command openssl. Files that exist are kept, so
that a second run changes nothing. Git ignores the directory. Only its owner can enter it; the files in it
can be read by everyone, since Compose gives them to containers with the owner and the mode that they have
here.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import subprocess
import sys
from pathlib import Path

DIRECTORY = Path(__file__).parent / "secrets"
# Users of Kafka with a password: principals of docs/security.md. `admin` has a certificate.
KAFKA_USERS = ("registry", "edge", "joiner", "alerts", "reader")
MQTT_USERS = ("edge", "motes")
# Servers with a certificate, and the names by which clients reach them.
SERVERS = ("kafka", "mosquitto")
DAYS = "825"
# Of PBKDF2. A password has 192 random bits, so that a slow hash protects nothing more.
_ITERATIONS = 101


def main(directory: Path) -> None:
    """Write all files that are missing."""
    directory.mkdir(mode=0o700, exist_ok=True)
    authority(directory)
    for name in SERVERS:
        certificate(directory, name, f"DNS:{name},DNS:localhost,IP:127.0.0.1")
    certificate(directory, "admin", None)
    # Kafka takes a key and its certificate in one file.
    _write(
        directory / "kafka.both",
        (directory / "kafka.key").read_text() + (directory / "kafka.crt").read_text(),
    )
    passwords = {f"kafka_{name}": password(directory / f"kafka_{name}") for name in KAFKA_USERS}
    passwords |= {f"mqtt_{name}": password(directory / f"mqtt_{name}") for name in MQTT_USERS}
    _write(
        directory / "mqtt_users",
        "".join(f"{name}:{mosquitto_hash(passwords[f'mqtt_{name}'])}\n" for name in MQTT_USERS),
    )
    print(f"certificates and passwords are in {directory}")


def authority(directory: Path) -> None:
    """The certificate authority that signs all certificates."""
    if not (directory / "ca.crt").exists():
        _openssl(
            *("req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", DAYS, "-subj", "/CN=tamis-compose"),
            *("-keyout", str(directory / "ca.key"), "-out", str(directory / "ca.crt")),
        )
        # No container gets this key.
        (directory / "ca.key").chmod(0o400)
        (directory / "ca.crt").chmod(0o444)


def certificate(directory: Path, name: str, names: str | None) -> None:
    """The key and the certificate of a server with these alternative `names`, or of a client (None)."""
    key, request, made = (directory / f"{name}.{suffix}" for suffix in ("key", "csr", "crt"))
    if made.exists():
        return
    usage = "serverAuth,clientAuth" if names else "clientAuth"
    lines = [f"extendedKeyUsage = {usage}", *([f"subjectAltName = {names}"] if names else [])]
    extensions = directory / f"{name}.cnf"
    extensions.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _openssl(
        *("req", "-new", "-newkey", "rsa:3072", "-nodes", "-subj", f"/CN={name}"),
        *("-keyout", str(key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-out", str(made), "-days", DAYS, "-extfile", str(extensions)),
        *("-CA", str(directory / "ca.crt"), "-CAkey", str(directory / "ca.key"), "-CAcreateserial"),
    )
    key.chmod(0o444)
    made.chmod(0o444)
    request.unlink()
    extensions.unlink()


def password(path: Path) -> str:
    """The password in a file, which is made if it is missing."""
    _write(path, secrets.token_urlsafe(24) + "\n")
    return path.read_text(encoding="utf-8").strip()


def mosquitto_hash(text: str) -> str:
    """The hash of a password, in the form of Mosquitto's password files (PBKDF2 with SHA-512)."""
    salt = secrets.token_bytes(12)
    found = hashlib.pbkdf2_hmac("sha512", text.encode(), salt, _ITERATIONS)
    return f"$7${_ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"


def _write(path: Path, text: str) -> None:
    """Write a file, unless it exists."""
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        path.chmod(0o444)


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


if __name__ == "__main__":
    main(DIRECTORY)

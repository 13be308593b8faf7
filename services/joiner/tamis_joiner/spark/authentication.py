"""Spark's properties by which only its own processes may connect to its ports.

Without them Spark gives the bytes of anybody who reaches a port to Java's deserialisation. With a local
master and on Kubernetes, Spark makes a secret of its own for each start. Processes of a standalone cluster
have a file of properties in common, with a secret:

    python -m tamis_joiner.spark.authentication FILE
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from tamis.errors import InputError
from tamis_joiner.settings import JoinerSettings

AUTHENTICATE, SECRET = "spark.authenticate", "spark.authenticate.secret"
AUTHENTICATION = {
    AUTHENTICATE: "true",
    # All connections are encrypted. SASL, which Spark would accept otherwise, knows MD5 only.
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
}


def check_secret(settings: JoinerSettings, given: Mapping[str, str]) -> None:
    """Raises InputError if the processes of a standalone cluster have no secret in the `given` properties,
    unless these say that nobody else reaches the cluster's ports.
    """
    if not settings.master.startswith("spark:") or SECRET in given or given.get(AUTHENTICATE) == "false":
        return
    raise InputError(
        f"a standalone master needs {SECRET}: without it, everybody who reaches a port of Spark can run code",
        where="TAMIS_JOINER_SPARK_CONF",
        hint="name the file that master and workers have, too: docs/install-spark.md#make-a-secret",
    )


def write_file(path: Path) -> None:
    """Write the properties and a new secret to a file that only its owner can read. A file that exists is
    kept: running processes have its secret.
    """
    if path.exists():
        return
    lines = AUTHENTICATION | {SECRET: secrets.token_urlsafe(32)}
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w", encoding="utf-8") as file:
        file.writelines(f"{name} {value}\n" for name, value in lines.items())
    new.replace(path)


if __name__ == "__main__":
    write_file(Path(sys.argv[1]))

"""Makes the access tokens of one server of the Compose fleet, and the file of their digests for the server.

python make_tokens.py SERVER DIGESTS TOKENS writes the file that the server reads into the directory DIGESTS,
and a file for each token into TOKENS. They are two volumes: the server sees no token, and a client only its
own. Tokens that exist are kept. It needs Python's standard library only.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from pathlib import Path

# The tokens of each server: name, role, and the stream that it may write to (None: no such limit).
TOKENS: dict[str, list[tuple[str, str, str | None]]] = {
    "registry": [("reader", "reader", None), ("writer", "writer", None)],
    "edge": [("sender", "writer", "readings")],
}


def main(server: str, digests: Path, tokens: Path) -> None:
    """Write all files that are missing."""
    lines = ["tokens:"]
    for name, role, stream in TOKENS[server]:
        text = _token(tokens / name)
        lines += [f"  - name: {name}", f"    role: {role}"]
        lines += [f"    sha256: {hashlib.sha256(text.encode()).hexdigest()}"]
        lines += [f"    streams: [{stream}]"] if stream else []
    _write(digests / f"{server}.yaml", "\n".join(lines) + "\n")
    print(f"{digests / f'{server}.yaml'}: {', '.join(name for name, _, _ in TOKENS[server])}")


def _token(path: Path) -> str:
    """The token in a file, which is made if it is missing."""
    if not path.exists():
        _write(path, f"tamis_{secrets.token_urlsafe(32)}\n")
    return path.read_text(encoding="utf-8").strip()


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, complete or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

"""Makes the access tokens of the Compose fleet, in a volume that its containers share.

python make_tokens.py DIRECTORY writes the tokens (reader, writer, sender) and the two files with their
digests that registry and edges read. Tokens that exist are kept. It needs Python's standard library only.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from pathlib import Path

# The tokens of each server's file: name, role, and the streams that it may write to (None: no such limit).
FILES: dict[str, list[tuple[str, str, str | None]]] = {
    "registry.yaml": [("reader", "reader", None), ("writer", "writer", None)],
    "edge.yaml": [("sender", "writer", "readings")],
}


def main(directory: Path) -> None:
    """Write all files that are missing."""
    for file, entries in FILES.items():
        lines = ["tokens:"]
        for name, role, stream in entries:
            text = _token(directory / name)
            lines += [f"  - name: {name}", f"    role: {role}"]
            lines += [f"    sha256: {hashlib.sha256(text.encode()).hexdigest()}"]
            lines += [f"    streams: [{stream}]"] if stream else []
        _write(directory / file, "\n".join(lines) + "\n")
        print(f"{directory / file}: {', '.join(name for name, _, _ in entries)}")


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
    main(Path(sys.argv[1]))

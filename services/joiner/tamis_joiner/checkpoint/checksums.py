"""Comparison of files that Hadoop wrote with the checksums that it stores beside them.

The checksums of file F are in `.F.crc`: "crc", a zero byte, the length n of a part in four bytes, and the
CRC-32 of every n bytes of F in four bytes each, all big-endian (org.apache.hadoop.fs.ChecksumFileSystem).
"""

from __future__ import annotations

import zlib
from pathlib import Path

_HEAD = b"crc\0"
_WORD = 4
# The length of a part that Hadoop takes by default.
_PART = 512
# Parts that are read at a time.
_PARTS = 4096


def fault(file: Path) -> str | None:
    """The fault of a file, as the end of a sentence that begins with its name; None if it has none.

    A file without checksums is only opened, because Hadoop itself reads it without a warning.
    """
    try:
        if not file.is_file():
            return "is missing" if not file.exists() else "is no file"
        if file.stat().st_size == 0:
            return "is empty"
        known = _checksums(file)
        if known is None:
            with file.open("rb"):
                return None
        return _compared(file, known)
    except OSError as error:
        return f"can't be read: {error.strerror}"


def write_checksums(file: Path) -> None:
    """Write the checksums of a file. Raises OSError."""
    content = file.read_bytes()
    parts = (content[at : at + _PART] for at in range(0, len(content), _PART))
    sums = b"".join(zlib.crc32(part).to_bytes(_WORD) for part in parts)
    _beside(file).write_bytes(_HEAD + _PART.to_bytes(_WORD) + sums)


def has_checksums(file: Path) -> bool:
    """True if the file has checksums, so that `fault` compares its content."""
    try:
        return _checksums(file) is not None
    except OSError:
        return False


def _checksums(file: Path) -> bytes | None:
    sums = _beside(file)
    known = sums.read_bytes() if sums.exists() else b""
    # Hadoop ignores a checksum file with another beginning.
    return known if known.startswith(_HEAD) and len(known) >= len(_HEAD) + _WORD else None


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _compared(file: Path, known: bytes) -> str | None:
    length = int.from_bytes(known[len(_HEAD) : len(_HEAD) + _WORD])
    expected = [known[at : at + _WORD] for at in range(len(_HEAD) + _WORD, len(known), _WORD)]
    at = 0
    with file.open("rb") as content:
        while block := content.read(length * _PARTS):
            for start in range(0, len(block), length):
                if at == len(expected):
                    return f"is longer than its checksums in {_beside(file).name}"
                if zlib.crc32(block[start : start + length]).to_bytes(_WORD) != expected[at]:
                    return f"doesn't match its checksum at byte {at * length} (in {_beside(file).name})"
                at += 1
    return None if at == len(expected) else f"is cut off at byte {file.stat().st_size}"

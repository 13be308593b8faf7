"""Location of the checkpoint, and its files with the checksums that Hadoop stores beside them.

The location is a directory of this machine, or a URI of another file system of Hadoop. The checksums of file
F are in `.F.crc`: "crc", a zero byte, the length n of a part in four bytes, and the CRC-32 of every n bytes
of F in four bytes each, all big-endian (org.apache.hadoop.fs.ChecksumFileSystem).
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

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


_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/")


@dataclass(frozen=True)
class Location:
    """Location of the checkpoint. `uri` is what Spark gets. `path` is the same location as a path; None on
    another file system.
    """

    uri: str
    path: Path | None

    @classmethod
    def parse(cls, text: str) -> Location:
        """The location that an operator writes: a path, `file:///path`, or a URI such as `hdfs://host/path`.

        >>> Location.parse("s3a://bucket/joiner/").child("query").uri
        's3a://bucket/joiner/query'
        >>> Location.parse("file:///data/joiner").path
        PosixPath('/data/joiner')
        """
        match = _SCHEME.match(text)
        if match is None:
            return cls.of(Path(text))
        if match["scheme"].lower() == "file":
            return cls.of(Path(unquote(urlsplit(text).path)))
        return cls(text.rstrip("/"), None)

    @classmethod
    def of(cls, path: Path) -> Location:
        """The location of a path of this machine."""
        resolved = path.resolve()
        return cls(str(resolved), resolved)

    def child(self, name: str) -> Location:
        """The location of `name` in this directory."""
        return Location(f"{self.uri}/{name}", None if self.path is None else self.path / name)


class Files(Protocol):
    """Small files of a directory, on any file system. Methods raise OSError."""

    location: Location

    def names(self, folder: str) -> list[str]:
        """The names in a folder of the directory; empty if the folder is missing."""

    def read(self, name: str) -> str | None:
        """The text of a file; None if it is missing."""

    def write(self, name: str, text: str) -> None:
        """Write a file; the directory is created if it is missing."""

    def replace(self, name: str, text: str) -> None:
        """Write a file: after a crash it has either the new or the old text."""


class LocalFiles:
    """Files in a directory of this machine."""

    def __init__(self, directory: Path) -> None:
        self.location = Location.of(directory)
        self._directory = directory

    def names(self, folder: str) -> list[str]:
        """As `Files.names`."""
        found = self._directory / folder
        return [file.name for file in found.iterdir()] if found.is_dir() else []

    def read(self, name: str) -> str | None:
        """As `Files.read`."""
        file = self._directory / name
        return file.read_text() if file.exists() else None

    def write(self, name: str, text: str) -> None:
        """As `Files.write`."""
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / name).write_text(text)

    def replace(self, name: str, text: str) -> None:
        """As `Files.replace`. The checksums are missing for a moment, and never those of the other text."""
        draft = self._directory / f"{Path(name).name}.new"
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        file_name = self._directory / name
        file_name.with_name(f".{file_name.name}.crc").unlink(missing_ok=True)
        draft.replace(file_name)
        write_checksums(file_name)

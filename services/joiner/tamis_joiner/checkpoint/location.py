"""Location of the checkpoint: a directory of this machine, or a URI of another file system of Hadoop."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from tamis_joiner.checkpoint.checksums import write_checksums

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

"""Files of the query's checkpoint, checked without Spark. Each error names the damage and the repair.

| in the query's directory | content |
|---|---|
| `metadata` | the query's identity |
| `offsets/N` | the offsets up to which batch N reads; written before it runs |
| `commits/N` | written when batch N is done |
| `state/0/P/V.zip` | a snapshot of partition P's state at version V, with files under `SSTs` |
| `state/0/P/V.changelog` | the changes from version V - 1 to V; batch N makes version N + 1 |
| `state/0/_metadata`, `_stateSchema` | the operator and the schema of the state |

Spark continues from the greatest N in `offsets`. If `commits` has N too, Spark begins batch N + 1 with
version N + 1 of the state. If not, it runs batch N again with version N.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4
from zipfile import BadZipFile, ZipFile

from tamis.errors import RefusedError
from tamis.telemetry import get_logger
from tamis_joiner.checkpoint.location import fault, has_checksums
from tamis_joiner.checkpoint.start_checks import partitions_of_offsets

log = get_logger("joiner")

_OPERATOR = "0"  # the query has one operator with state
# A message names at most this many files.
_MAX_NAMED = 3

_NEW_DIRECTORY = (
    "start with a new directory (--checkpoint): the joiner then reads its topics from their beginning, as far"
    " as Kafka still has them, alarms come again with the same id, and queries that count begin to count anew"
)
_RESTORE = f"restore the directory from a backup, or {_NEW_DIRECTORY}"

Parser = Callable[[str], None]
"""Parses the text of a file; raises ValueError, KeyError or TypeError where the file is damaged."""


@dataclass(frozen=True)
class Damage:
    """A file or directory that the query needs and can't use. `what` continues a sentence that begins with
    its name.
    """

    file: Path
    what: str
    original: Path | None = None  # the former path of a directory that was moved

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


class Checkpoint:
    """The files of the query in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._checked: dict[Path, str | None] = {}  # `_last_repeatable` checks the same files again
        self._without_checksums: list[Path] = []

    def partitions(self) -> int | None:
        """The partition count with which the query began; None if no batch has been written."""
        for batch in reversed(self._batches("offsets")):
            try:
                text = (self._directory / "offsets" / str(batch)).read_text()
            except (OSError, ValueError):
                continue  # damaged; every batch has the same count
            if (count := partitions_of_offsets(text)) is not None:
                return count
        return None

    def damage_of_logs(self) -> list[Damage]:
        """Damage of offsets, commits and metadata that keeps the query from starting. The state isn't
        checked, because it may be large. Spark itself finds some of this damage only after it has repeated a
        batch.
        """
        offsets, commits = self._batches("offsets"), self._batches("commits")
        if not offsets and not commits:
            return self._damage_of_beginning()
        found = self._check(self._directory / "metadata", _parse_metadata)
        if commits and (not offsets or commits[-1] > offsets[-1]):
            missing = self._directory / "offsets" / str(commits[-1])
            return [*found, Damage(missing, f"is missing, though batch {commits[-1]} is in commits")]
        last = offsets[-1]
        for batch in range(max(0, last - 1), last + 1):
            found += self._check(self._directory / "offsets" / str(batch), _parse_offsets)
        if commits:
            found += self._check(self._directory / "commits" / str(commits[-1]), _parse_log)
        return found

    def damage(self) -> list[Damage]:
        """Damage that keeps the query from continuing. All files that it needs are read to their end."""
        found = self.damage_of_logs()
        offsets, commits = self._batches("offsets"), self._batches("commits")
        if found or not offsets:
            return found
        done = bool(commits) and commits[-1] == offsets[-1]
        return self._damage_of_state(offsets[-1] + done)

    def refusal(self, damages: list[Damage]) -> RefusedError:
        """The error that names the damage and how to repair it. Each damage is logged, too."""
        for damage in damages:
            log.error("the checkpoint is damaged", file=str(damage.file), damage=damage.what)
        first, *others = damages
        kind = "directory" if first.file.is_dir() else "file"
        messages = [
            f"the checkpoint is damaged: this {kind} {first.what}",
            *map(str, others[: _MAX_NAMED - 1]),
        ]
        if len(damages) > _MAX_NAMED:
            messages.append(f"{len(damages)} are damaged in all")
        return RefusedError("; ".join(messages), where=str(first.file), hint=self._advice(damages))

    def hint_without_damage(self) -> str:
        """A hint for a checkpoint in which `damage` finds nothing."""
        if not self._batches("offsets"):
            return "start the joiner again: its checkpoint has no batch yet"
        if (count := len(self._without_checksums)) > 0:
            return (
                f"no damage was found in the checkpoint, but {count} of its files, such as"
                f" {self._without_checksums[0]}, have no checksums: start the joiner again; if it ends for"
                f" the same reason, {_RESTORE}"
            )
        return (
            "the checkpoint is complete, by the checksums of its files: remove the cause and start the joiner"
            " again; it continues where it ended"
        )

    def _advice(self, damages: list[Damage]) -> str:
        metadata = self._directory / "metadata"
        if [damage.file for damage in damages] == [metadata]:
            document = json.dumps({"id": str(uuid4())})
            return (
                f"write {document} into it, delete .metadata.crc beside it and start again: the query then"
                " has a new identity, and nothing is lost"
            )
        if damages[0].original is not None:
            return f"move it back to {damages[0].original}, or {_NEW_DIRECTORY}"
        back = self._last_repeatable()
        if back is None or any(damage.file == metadata for damage in damages):
            return _RESTORE
        if back == self._batches("offsets")[-1] == max(back, *self._batches("commits")):
            what = f"delete {self._directory / 'commits' / str(back)}"
            again = f"batch {back} is run again with its records from Kafka, and its"
        else:
            what = (
                f"delete, in {self._directory}, all in offsets above {back} and all in commits from {back} on"
            )
            again = f"the batches from {back} on are run again with their records from Kafka, and their"
        return f"{what} and start again: {again} alarms come again with the same id; or {_RESTORE}"

    def _last_repeatable(self) -> int | None:
        """The last batch that can be run again, because the files that it needs aren't damaged."""
        offsets = self._batches("offsets")
        for batch in reversed(offsets):
            needed = [batch] if batch == 0 else [batch - 1, batch]
            logs = [
                self._check(self._directory / "offsets" / str(number), _parse_offsets) for number in needed
            ]
            if not any(logs) and not self._damage_of_state(batch):
                return batch
        return None

    # ---- parts

    def _damage_of_beginning(self) -> list[Damage]:
        """Damage of a checkpoint without a batch: it is new, or its batches were deleted."""
        partition = self._directory / "state" / _OPERATOR / "0"
        if partition.is_dir() and any(partition.glob("[0-9]*")):
            return [Damage(self._directory / "offsets", "has no batch, and the state has")]
        metadata = self._directory / "metadata"
        return self._check(metadata, _parse_metadata) if metadata.exists() else []

    def _damage_of_state(self, version: int) -> list[Damage]:
        if version == 0:
            return []  # the state is still empty
        state = self._directory / "state" / _OPERATOR
        if not state.is_dir():
            return [Damage(state, "is missing")]
        found = self._damage_of_schema(state, version)
        for partition in range(self.partitions() or 0):
            found += self._damage_of_partition(state / str(partition), version)
        return found

    def _damage_of_schema(self, state: Path, version: int) -> list[Damage]:
        folder = state / "_metadata" / "v2"
        # Each start of the query writes a file, named by its batch.
        batches = [batch for batch in _numbers(folder) if batch <= version]
        if not batches:
            return [Damage(folder, "has no file")]
        found = self._check(folder / str(batches[-1]), _parse_log)
        if found:
            return found
        for schema in _schemas(folder / str(batches[-1])):
            if not schema.exists() and self._directory not in schema.parents:
                what = f"was moved, and Spark looks for {schema}"
                return [Damage(self._directory, what, original=schema.parents[4])]
            found += self._check(schema)
        return found

    def _damage_of_partition(self, folder: Path, version: int) -> list[Damage]:
        snapshots = [number for number in _numbers(folder, ".zip") if number <= version]
        if not snapshots:
            # The first commit of a partition always writes a snapshot.
            return [Damage(folder, f"has no snapshot up to version {version}, such as 1.zip")]
        snapshot = folder / f"{snapshots[-1]}.zip"
        found = self._check(snapshot) or self._damage_of_tables(snapshot)
        for number in range(snapshots[-1] + 1, version + 1):
            found += self._check(folder / f"{number}.changelog")
        return found

    def _damage_of_tables(self, snapshot: Path) -> list[Damage]:
        """Damage of the files of RocksDB that a snapshot names."""
        try:
            with ZipFile(snapshot) as archive:
                _, _, document = archive.read("metadata").decode().partition("\n")
            names = [str(one["dfsSstFileName"]) for one in json.loads(document)["sstFiles"]]
        except (BadZipFile, KeyError, TypeError, ValueError) as error:
            return [Damage(snapshot, f"isn't a snapshot: {error}")]
        return [damage for name in names for damage in self._check(snapshot.parent / "SSTs" / name)]

    def _check(self, file: Path, parse: Parser | None = None) -> list[Damage]:
        if file not in self._checked:
            self._checked[file] = fault(file) or _parse_error(file, parse)
            if not has_checksums(file):
                self._without_checksums.append(file)
        what = self._checked[file]
        return [] if what is None else [Damage(file, what)]

    def _batches(self, log: str) -> list[int]:
        return _numbers(self._directory / log)


def _numbers(folder: Path, suffix: str = "") -> list[int]:
    """The numbers in the names of a directory's files, in order."""
    if not folder.is_dir():
        return []
    names = (file.name.removesuffix(suffix) for file in folder.iterdir() if file.name.endswith(suffix))
    return sorted(int(name) for name in names if name.isdecimal())


def _parse_error(file: Path, parse: Parser | None) -> str | None:
    if parse is None:
        return None
    try:
        parse(file.read_text())
    except (ValueError, KeyError, TypeError) as error:
        return f"can't be read: {error}"
    return None


def _parse_metadata(text: str) -> None:
    str(json.loads(text)["id"])


def _parse_log(text: str) -> None:
    """The log has a version and then lines of JSON."""
    version, *lines = text.splitlines()
    if not version.startswith("v") or not lines:
        raise ValueError("a version and a line of JSON are expected")
    for line in lines:
        json.loads(line)


def _parse_offsets(text: str) -> None:
    _parse_log(text)
    if len(text.splitlines()) < 3:
        raise ValueError("it has no offsets")


def _schemas(metadata: Path) -> Iterator[Path]:
    """The files with the schema of the state. Spark names them by absolute paths."""
    for line in metadata.read_text().splitlines()[1:]:
        for store in json.loads(line).get("stateStoreInfo", ()):
            for path in store.get("stateSchemaFilePaths", ()):
                yield Path(unquote(urlsplit(path).path))

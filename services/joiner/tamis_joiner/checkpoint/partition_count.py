"""Check that the checkpoint directory belongs to a fleet with the same partition count.

Spark takes the number of its tasks from the checkpoint without a warning, so the joiner of a fleet with
another partition count must not start with it.
"""

from __future__ import annotations

import json

from tamis.errors import InputError, RefusedError
from tamis.messaging import topics
from tamis_joiner.checkpoint.location import Files

_RECORD = "tamis-joiner.json"
_OFFSETS = "query/offsets"


def check_partition_count(files: Files, partitions: int) -> None:
    """Create the directory, or check its partition count. The count is in the query's first batch; before
    that batch it is in a file that the joiner writes.

    Raises InputError if the directory can't be created, read or written, RefusedError if the counts differ.
    """
    try:
        recorded = _recorded(files)
        known = _of_query(files) or recorded or partitions
        if recorded != known:
            files.write(_RECORD, json.dumps({"partitions": known}))
    except OSError as error:
        raise InputError(
            f"the checkpoint directory can't be created or written: {error.strerror or error}",
            where=files.location.uri,
            hint="choose another one with --checkpoint or TAMIS_JOINER_CHECKPOINT",
        ) from error
    if known != partitions:
        raise RefusedError(
            f"the checkpoint belongs to a fleet with {known} partitions; {topics.PLANS} has {partitions}",
            where=files.location.uri,
            hint="choose another checkpoint directory, or the Kafka that it belongs to",
        )


def partitions_of_offsets(text: str) -> int | None:
    """The partition count in the offsets of a batch; None if the text is damaged."""
    try:
        _, settings, *_ = text.splitlines()
        return int(json.loads(settings)["conf"]["spark.sql.shuffle.partitions"])
    except (ValueError, KeyError, TypeError):
        return None


def _of_query(files: Files) -> int | None:
    """The partition count with which the query began; None if no batch has been written."""
    batches = sorted((int(name) for name in files.names(_OFFSETS) if name.isdecimal()), reverse=True)
    for batch in batches:
        # A damaged file is skipped: every batch has the same count.
        if (text := files.read(f"{_OFFSETS}/{batch}")) and (count := partitions_of_offsets(text)) is not None:
            return count
    return None


def _recorded(files: Files) -> int | None:
    """The partition count that a joiner wrote; None if the file is missing or can't be read."""
    try:
        return int(json.loads(files.read(_RECORD) or "")["partitions"])
    except (ValueError, KeyError, TypeError):
        return None

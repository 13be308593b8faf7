"""The tuples of a batch that concern the entries of a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tamis.expressions.vectors import Mask, Vector


@dataclass(frozen=True, slots=True)
class Matches:
    """`published`: tuples that pass some entry without omission, and so are published. `offered`: for each
    entry with omission, the tuples on which it decides, of shape (entries, n).
    """

    published: Mask
    offered: Mask

    def any(self) -> Mask:
        """The tuples that match any entry."""
        found: Mask = self.published | self.offered.any(axis=0)
        return found

    def only(self, rows: Mask) -> Matches:
        """The matches among some of the tuples."""
        return Matches(self.published & rows, self.offered & rows)


def matches(
    partition_key: Sequence[str],
    columns: Mapping[str, Vector],
    without_omission: Mask,
    with_omission: Mask,
    null_keys: Sequence[bool],
) -> Matches:
    """The matches of a topic's entries, from where the filters of its entries hold, each of shape (entries,
    n). `null_keys`: of the entries with omission, those that also concern tuples without a key.

    A tuple with NULL in the partition key joins nothing. So it matches no entry with omission that serves
    joins alone. It may match an entry without omission, which may serve an alert over this stream alone.
    """
    offered = with_omission
    for name in partition_key:
        null = columns[name].null
        if null is not None:
            offered = offered & (~null | np.array(null_keys, np.bool_)[:, None])
    return Matches(np.logical_or.reduce(without_omission, axis=0), offered)

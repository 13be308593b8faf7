"""Alternative over one stream: each tuple that belongs to it is a row, and no tuple is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tamis.bounded.synopses.columns import Ints
from tamis.bounded.timeless.minimised_alternatives import Minimal
from tamis.bounded.timeless.translate import Translation
from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.timeless.alternative_tuples import AlternativeTuples
from tamis.evaluation.standing.timeless.matches import Matches, Wanted


class SingleStreamAlternative:
    """See `Alternative`."""

    entries = 0

    def __init__(self, translation: Translation, minimal: Minimal, wanted: Wanted) -> None:
        self._tuples, self._wanted = AlternativeTuples(translation, minimal), wanted

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """See `Alternative`."""
        (stream,) = self._tuples.query.streams
        if stream not in batches:
            return Matches.none(self._wanted)
        batch, places = batches[stream], np.flatnonzero(of == list(batches).index(stream))
        at = np.flatnonzero(self._tuples.belonging(0, batch, len(places)))
        # Sources that were eliminated have the same tuple as the remaining one.
        read = (*self._wanted.columns, *self._wanted.aggregated)
        columns = {(one.alias, one.name): batch[one.name].take(at) for one in read}
        return Matches.single(places[at], columns, self._wanted)

    def dumped(self) -> list[Any]:
        """See `Alternative`."""
        return []

    def restore(self, dumped: list[Any]) -> None:
        """See `Alternative`."""

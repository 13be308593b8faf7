"""An alternative over one stream: each tuple that belongs to it is a row, and nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tamis.bounded.evaluate.columns import Ints
from tamis.evaluation.standing.contract import Batch
from tamis.evaluation.standing.timeless.matches import Matches, Wanted
from tamis.evaluation.standing.timeless.sifted import Sifted
from tamis.planning.timeless.minimal import Minimal
from tamis.planning.timeless.translate import Translation


class Alone:
    """See `Alternative`."""

    entries = 0

    def __init__(self, translation: Translation, minimal: Minimal, wanted: Wanted) -> None:
        self._sifted, self._wanted = Sifted(translation, minimal), wanted

    def take(self, batches: Mapping[str, Batch], of: Ints) -> Matches:
        """See `Alternative`."""
        (stream,) = self._sifted.query.streams
        if stream not in batches:
            return Matches.none(self._wanted)
        batch, places = batches[stream], np.flatnonzero(of == list(batches).index(stream))
        at = np.flatnonzero(self._sifted.keeping(0, batch, len(places)))
        # A source that was taken out has the tuple of the one that is left.
        read = (*self._wanted.columns, *self._wanted.tallied)
        columns = {(one.alias, one.name): batch[one.name].take(at) for one in read}
        return Matches.single(places[at], columns, self._wanted)

    def dumped(self) -> list[Any]:
        """See `Alternative`."""
        return []

    def restore(self, dumped: list[Any]) -> None:
        """See `Alternative`."""

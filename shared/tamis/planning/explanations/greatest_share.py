"""The greatest share of a stream that omission can leave out, from the declared rate.

Nobody can promise how many tuples omission leaves out: it depends on how the values move. A greatest share
follows from the declared rate.

Between two neighbouring retained tuples of a key that have omitted tuples between them lies
at most the omission interval L, so both and the tuples between them lie in a closed span of L. At most
N = count * (L div per + 1) tuples of a key lie in such a span. Of each retained tuple and the omitted ones
that follow it, at most N - 2 of N - 1 tuples are omitted. With windows, at least one of the tuples of each
window is retained, so at most N - 1 of N are omitted, where N is that of the window's size.
"""

from __future__ import annotations

from tamis.plan.omission import Omission
from tamis.query.model import StreamDef


def most_omitted(omission: Omission, stream: StreamDef) -> float | None:
    """The greatest share of the tuples that omission can leave out; None without omission or a rate."""
    if not omission.interval or stream.rate is None:
        return None
    most = stream.rate.count * (omission.interval // stream.rate.per + 1)
    if omission.window is not None:
        return (most - 1) / most
    return max(0.0, (most - 2) / (most - 1)) if most > 1 else 0.0

"""Standing queries: they keep synopses, and give rows as tuples come. `tamis run` and the joiner evaluate
them by the same objects.

| file | idea |
|---|---|
| `contract` | what every kind of standing query does |
| `compiled` | which kind a query is of |
| `recorded` | a standing query over recordings in the order in which tuples came |
| `played` | one of any kind over recordings |
| `timeless` | queries over streams without time |
| `windowed` | aggregates of windows |
| `in_time` | queries in application time |
"""

from tamis.evaluation.standing.compiled import compiled, standing
from tamis.evaluation.standing.contract import WITHDRAWN, CountsLate, InTurn, Rows, Standing
from tamis.evaluation.standing.played import played
from tamis.evaluation.standing.recorded import Played, play

__all__ = [
    "WITHDRAWN",
    "CountsLate",
    "InTurn",
    "Played",
    "Rows",
    "Standing",
    "compiled",
    "play",
    "played",
    "standing",
]

"""Aggregates of windows over one stream, grouped: a row for each window and group.

| file | idea |
|---|---|
| `codes` | numbers for groups and texts |
| `table` | partial aggregates in columns, by pane and group |
| `sums` | exact sums of a batch, in columns |
| `partials` | what is kept for each aggregate |
| `closing` | the panes of windows that end, put together |
| `groups` | the standing query |
| `recorded` | the same over a recording |
"""

from tamis.evaluation.standing.windowed.groups import WindowedGroups
from tamis.evaluation.standing.windowed.recorded import play_windows

__all__ = ["WindowedGroups", "play_windows"]

"""The columns that `similar(…)` adds to a stream, computed from the readings of each key.

| module | contents |
|---|---|
| `series_watcher` | all watches of one base stream |
| `pattern_group` | the patterns that share an index, for many series |
| `watched_columns` | the four columns of one watch over a batch |
| `latest_times` | the event times of the latest readings of each series |

Edges and `tamis run` use the same code. The package is pure.
"""

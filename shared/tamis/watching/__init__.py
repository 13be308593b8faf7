"""The columns that calls such as `similar(…)` and `lag(…)` add to a stream, computed by key.

| module | contents |
|---|---|
| `series_watcher` | all watches of one base stream, and the patterns that share an index |
| `window_group` | the window functions of one value |
| `key_history` | the latest readings of each key, for window functions, and their event times |
| `watched_columns` | the columns of one watch over a batch |

Edges and `tamis run` use the same code. The package is pure.
"""

"""Aggregates of windows over one stream, grouped: a row for each window and group.

`groups` is the standing query. Time is divided into `panes`. Each pane and group has partial aggregates
(`partials`) in a table in columns (`table`); `closing` merges the panes of the windows that have ended (cf.
Li et al., *No pane, no gain*, 2005).
"""

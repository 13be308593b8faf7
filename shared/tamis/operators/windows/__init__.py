"""Aggregates of windows and sessions, grouped: a row for each window and group.

Begin with `groups`, the operator over windows: time is divided into panes, and those of windows that have
ended are merged (cf. Li et al., *No pane, no gain*, 2005). `sessions` is that over sessions. Each pane and
group has partial aggregates (`partials`) in a table in columns (`table`); `group_rows` computes rows from
them, and `row_joins` joins tuples with tables.

Edges can aggregate the readings of panes (`open_panes`, with `slots`) and send rows of partial aggregates
(`pane_rows`, `pane_documents`) for several queries, of which each takes what it needs (`shared_panes`).
"""

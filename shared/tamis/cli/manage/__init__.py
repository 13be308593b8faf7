"""Subcommands that ask or change a running fleet, and those of a terminal of its user.

| module | contents |
|---|---|
| `apply` | `tamis apply` and `tamis drop`: definitions at the registry |
| `get` | their state |
| `sql` | the shell for both |
| `watch` | alarms and episodes as they come from Kafka |
| `_followed` | for it: facts of alerts, and what is silenced |
| `silence` | `tamis silence`, `unsilence`, `acknowledge`: notifications that people don't need now |
| `redeliver` | notifications among the dead letters |
| `token` | a token of the registry or of edges |
| `completion` | completion by the shell |
"""

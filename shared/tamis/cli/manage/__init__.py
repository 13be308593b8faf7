"""Subcommands that ask or change a running fleet, and those of a terminal of its user.

| module | contents |
|---|---|
| `apply`, `drop` | definitions at the registry |
| `get` | their state |
| `sql` | the shell for both |
| `watch` | alarms and episodes as they come from Kafka |
| `_definitions`, `_silences` | for it: facts of alerts, and what is silenced |
| `silence`, `unsilence`, `acknowledge` | notifications that people don't need now |
| `redeliver` | notifications among the dead letters |
| `token` | a token of the registry or of edges |
| `completion` | completion by the shell |
"""

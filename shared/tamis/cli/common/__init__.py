"""Parts that several subcommands share.

| module | contents |
|---|---|
| `options` | choices, the option `--registry`, and completion of names that the registry has |
| `sql_file`, `recordings` | files as input |
| `tables` | tables in a terminal and in a pipe, and what statements have done |
| `state_tables` | the state of the fleet as such tables |
| `signals` | Ctrl-C and SIGTERM |
"""

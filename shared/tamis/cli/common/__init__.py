"""Parts that several subcommands share.

| module | contents |
|---|---|
| `registry_option` | the option `--registry` |
| `names` | completion of names on the command line |
| `sql_file`, `recordings` | files as input |
| `tables` | tables in a terminal and in a pipe |
| `state_tables` | the state of the fleet as such tables |
| `outcomes` | what statements have done |
| `signals` | Ctrl-C and SIGTERM |
"""

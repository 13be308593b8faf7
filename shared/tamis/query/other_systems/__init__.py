"""Window syntax of other systems: what is accepted in their spelling, and what is shown rewritten.

| module | content |
|---|---|
| `table_functions` | Flink's `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), …))`, which is accepted |
| `rewriting` | the windows of ksqlDB, of older Flink and of TimescaleDB, with the user's query rewritten |
| `clauses` | positions of FROM, ON, WHERE and GROUP BY in the tokens of a SELECT |
| `token_edits` | replacements of tokens in a text |
"""

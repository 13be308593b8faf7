"""The shell of `tamis sql`.

| module | contents |
|---|---|
| `statements` | runs the statements of a text one by one, and prints what each one did |
| `readings_query` | a SELECT over the newest readings of one stream, read as queries are |
| `newest_readings` | its rows: readings of the stream's topics, filtered and computed here |
| `prompt` | the interactive part: history, several lines, keys |
| `completion` | names, keywords and statement forms that fit where the cursor is |
| `highlighting` | colours of SQL as it is typed |
"""

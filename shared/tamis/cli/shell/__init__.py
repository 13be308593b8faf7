"""The shell of `tamis sql`.

| module | contents |
|---|---|
| `statements` | runs the statements of a text one by one, and prints what each one did |
| `newest_readings` | a SELECT over the newest readings of one stream: as a query, and its rows |
| `prompt` | the interactive part: history, several lines, keys, colours |
| `completion` | names, keywords and statement forms that fit where the cursor is |
"""

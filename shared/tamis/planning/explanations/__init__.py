"""Explanations of queries: what `tamis explain` and the registry say, and their text for people.

| module | content |
|---|---|
| `explanation` | the explanation of a query and of each source, and its JSON |
| `text` | the text for people, in plain words or with the theory |
| `greatest_share` | the greatest share of a stream that omission can leave out, from the declared rate |
| `measured` | the tuples of a recording that edges drop for one query |
| `advice` | changes of declarations and bounds that allow more omission, each tried |
| `missing_keys` | joins without an equality of keys, and the equality that is probably meant |
| `latest_values` | the explanation of a query with ASOF JOIN |
| `row_growth` | joins whose rows can grow much faster than the readings |
"""

"""Explanations of queries: what `tamis explain` and the registry say, and their text for people.

| module | content |
|---|---|
| `explanation` | the explanation of a query and of each source, and its JSON |
| `text` | the text for people, in plain words or with the theory |
| `transfer` | what edges send of a source to Kafka, with the bound on the link |
| `measured` | the tuples of a recording that edges drop for one query |
| `cut_replay` | the partial aggregates that edges send of a recording |
| `advice` | changes of declarations and bounds that allow more omission, each tried |
| `probable_mistakes` | valid queries that probably don't mean what they say |
| `row_growth` | joins whose rows can grow much faster than the readings, or that lack an equality of keys |
"""

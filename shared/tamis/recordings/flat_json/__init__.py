"""Decoder of flat JSON objects: from their bytes to columns, without objects of Python.

| file | contents |
|---|---|
| `columns` | `FlatDecoder`: payloads to one array for each column; known last fields taken off |
| `scan` | the compiled loop over payloads, fields and values |
| `tokens` | compiled scanners of strings, numbers and times, and the nearest DOUBLE of a decimal number |
| `text_table` | texts by number, so that a text that comes again is not made again |

It understands objects of strings without escapes, numbers of up to 19 digits, `true`, `false` and `null`. It
leaves all other payloads to `orjson`, and reports none of their mistakes. What it understands has exactly the
values that `orjson` and `json_values` give.
"""

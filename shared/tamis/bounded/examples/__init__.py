"""Examples of unbounded queries in SQL values, run through the query as it is written.

The theory of `tamis.operators.synopses` knows differences only. A query may have other conditions, CHECKs,
alternatives, or further SELECTs of a UNION, which the tuples of an example might not fulfil. These modules
give every column that such a condition reads one value in all tuples of a stream. If the condition holds for
these values, it holds in an example of any size.

| module | for |
|---|---|
| `fixed_columns` | values for the columns that other conditions read |
| `sql_values` | the numbers of an example as values of SQL, and the values that are tried |
| `rows_as_written` | the rows of a query over a few tuples, by trying every combination |
| `proof` | the proof from these parts |
"""

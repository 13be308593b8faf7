"""Predicates of one stream: unions of boxes, implication, matching and evaluation (kuntschke-2006).

A *box* is a conjunction of conditions on single attributes, such as `a BETWEEN 1 AND 5 AND b > 2`. A
predicate with OR is a union of boxes.

- `parse`: reads a predicate from SQL. `normal_form` converts it to boxes, which consist of `ranges` of
  attributes and of `differences` between two attributes.
- `cover`: decides whether some boxes together contain another box.
- `matching`: compares the predicate of a query with the predicate of a stream. `implies` says whether every
  tuple of the query is in the stream; if not, `match` gives a wider predicate for the stream. `heuristics`
  are its quick methods.
- `evaluation`: finds the tuples that satisfy the predicates of many subscribers, by the index in `bitmap`
  over the `keys` of their columns.
- `selectivity`: estimates the share of tuples that satisfy a predicate, also by the `sketch` of a stream.

Everything is pure: no Kafka, no clock.
"""

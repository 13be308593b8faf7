"""Predicates of one stream: unions of boxes, implication, matching and evaluation (kuntschke-2006).

`parse` reads a predicate from SQL, and `normal_form` makes boxes of it: `ranges` of attributes and
`differences` of two attributes. `cover` decides whether boxes cover another box, and `matching` uses that to
compare a query with a stream: `match` says what the stream must be relaxed to, `implies` answers yes or no.
`evaluation` finds the tuples that satisfy the predicates of many subscribers, and `selectivity` estimates how
many do. Everything is pure: no Kafka, no clock.
"""

from tamis.predicates.predicate import Predicate

__all__ = ["Predicate"]

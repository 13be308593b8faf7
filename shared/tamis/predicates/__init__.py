"""Predicates of one stream: unions of boxes, what implies what, and which tuples satisfy which
(kuntschke-2006). Pure: no Kafka, no clock.

`parse` reads SQL, `match` compares a query with a stream, `implies` answers yes or no.
"""

from tamis.predicates.matching import Match, implies, match
from tamis.predicates.parse import parse
from tamis.predicates.predicate import Predicate

__all__ = ["Match", "Predicate", "implies", "match", "parse"]

"""Evaluation of the entries of topics over columns, used by edges and by `tamis verify`.

`matches` finds the tuples that concern the entries of a topic. `key_table` numbers omission keys, and
`omission_order` gives the numbers that omission compares. `rule` runs omission: in its stream form, as edges
do, or in its batch form, as `tamis.evaluation.replay` does for recordings.
"""

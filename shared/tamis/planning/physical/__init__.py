"""Physical plans: the nodes (`tamis.plan.nodes`) of queries that keep synopses.

Begin with `lowering`, which tells the kinds of queries apart; each kind has its file. What a node says was
decided by the same functions that the verdict rests on.
"""

"""Cuts: which readings of a shard each record of partial aggregates has, over crashes and changes of queries.

Begin with `chain`, the cuts of one topic at one shard, which edges run; `cut` is what commits say of them.
`replay` runs chains over a recording, with cuts and crashes at random, to compare their rows.
"""

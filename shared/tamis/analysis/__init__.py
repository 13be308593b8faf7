"""Analysis of a join by time, before anything is proved about it.

`conjuncts` classifies the conjuncts of a query with the help of `topology`. From the result follow
the partition key (`partition_keys`), the omission interval of each stream (`topology`), and the values that
a column can have (`domains`).
"""

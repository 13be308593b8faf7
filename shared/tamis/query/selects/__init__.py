"""SELECT and UNION: from a syntax tree to a `Query` of the model.

`set_operations` is the entry: one SELECT, or several under UNION. `select` resolves one SELECT from the
parts of the clauses: FROM (`from_clause`, with derived streams inlined), the columns of SELECT
(`select_list`), GROUP BY and HAVING (`grouping`), windows such as HOP (`windows`), and tells the kind of the
query (`evaluation`). `calls` has what a SELECT calls over several rows, `joins` the joins other than the
combination of all rows. `scope` resolves column names among the streams of FROM.
"""

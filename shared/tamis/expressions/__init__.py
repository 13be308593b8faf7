"""Expressions: the tree that SQL is parsed to, and everything that computes with it.

Begin with `nodes`, which defines the tree and the meaning of its operators, and `functions`, the table that
says all of each operator. `evaluate` computes columns with NumPy, `duckdb_sql` writes the SQL of the
reference, and `exact.conditions` decides a condition in exact arithmetic where rounding matters, which
`exact.rounding` tells. `json_form` carries expressions in plans, and `sql_text` shows them to people.
"""

"""Expressions: the tree that SQL is parsed to, and everything that computes with it.

`nodes` defines the tree and the meaning of its operators, which all evaluators share to the bit. `evaluate`
computes columns with NumPy, `duckdb_sql` writes the SQL of the reference, and `exact_conditions` decides a
condition in exact arithmetic where rounding matters, which `rounding` tells. `json_form` carries
expressions in plans, and `sql_text` shows them to people.
"""

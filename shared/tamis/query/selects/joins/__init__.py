"""Joins whose result is not a combination of rows: ASOF JOIN, EXISTS, NOT EXISTS, and their other spellings.

Begin with `existence`, to which `anti_joins` reduces LEFT JOIN … IS NULL, NO READING and NOT IN.
"""

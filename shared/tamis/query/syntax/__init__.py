"""The syntax of Tamis SQL: text to tokens to syntax trees, without names, types or the catalogue.

`text` splits a text into statements. `dialect` is RisingWave's dialect of sqlglot, made strict and with the
position of every expression. Statement heads such as CREATE STREAM are read token by token with a `cursor`;
the SELECT or expression after them goes to sqlglot through `parser`, which replaces the part of a
SELECT that has a syntax error, so that the mistakes in the other parts are reported, too.
"""

"""Patterns of CREATE PATTERN: from files or from SQL, and back to SQL.

`files` reads a CSV file or a folder of them, and gives readings with times a fixed step. `watch_text` writes
a definition with its values instead of the names of files, and the calls that watched streams and their
columns stand for.
"""

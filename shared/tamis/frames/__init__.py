"""Queries over data frames: the functions of `import tamis`.

A frame is a table of any library that has Arrow's C stream interface (`__arrow_c_stream__`), such as pandas,
Polars, DuckDB or Arrow itself. Begin with `inputs`, which reads it; no such library but PyArrow is imported
here. What the functions do is done by `tamis.offline`, as for the command line.
"""

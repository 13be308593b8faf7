"""The table of SQL functions and operators: an entry says all that Tamis knows of one.

Begin with `entry`, which has the fields of an entry. Each other file has the kernels of one subject and, at
its end, the entries that name them; importing this package fills the table, `entry.FUNCTIONS`.
"""

from tamis.expressions.functions import (
    arithmetic,
    bits,
    casts,
    entry,
    libm,
    logic,
    rounding,
    texts,
    times,
)

# The order of the tables of docs/sql.md.
for _entries in (arithmetic, libm, logic, rounding, bits, texts, times, casts):
    entry.register(*_entries.ENTRIES)

"""Planning: from the statements of a catalogue to the verdict on each query and the plan of the whole fleet.

Begin with `decide`, which gives the `verdict` on a query of any kind; `join_verdict` proves a join by time.
`explain` renders a verdict for people and programs. `incremental` assigns topics to readers and builds the
plan from the parts of the previous plan; `build` builds a plan from nothing. `queries` has what the joiner
gets of each query. The only I/O of planning is to read the files of tables.
"""

"""Planning: from the statements of a catalogue to the verdict on each query and the plan of the whole fleet.

`verdict` judges one query: it applies the omission rules and bounds the memory. `explain` gives the verdict
to people and programs. `incremental` assigns topics to readers and builds the plan from the parts of the
previous plan; `build` builds a plan from nothing. `queries` has what the joiner gets of each query. The only
I/O of planning is to read the files of tables.
"""

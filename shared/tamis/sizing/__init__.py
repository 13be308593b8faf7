"""Sizing: the partitions, memory, cores, disk and network traffic that the queries of a catalogue need.

`load` says how many readings come and how many of them edges retain: as given, as declared, or measured by
replaying a recording through the filters and the omission of an edge. `estimate` takes the plan that the
registry would make (`fleet`) and multiplies these loads with the plan's proven bounds (`spans`), with the
bytes of readings, tuples and alarms (`records`), and with the measured `unit_costs`. `edge`, `joiner`,
`alarms` and `kafka` have the figures of one part each. Each figure says where it comes from: proven,
measured, given, declared, computed from others, or assumed. `report` prints the figures as text and as JSON.
Nothing here asks a running fleet.
"""

"""Sizing: the partitions, memory, cores, disk and network traffic that the queries of a catalogue need.

Begin with `estimate`: it takes the plan that the registry would make (`fleet`) and multiplies the loads with
the plan's proven bounds, with the bytes of readings, tuples and alarms (`records`), and with the measured
costs (`figures`); it prints the figures as text and as JSON. `load` says how many readings come and how many
of them edges retain: as given, as declared, or measured by replaying a recording through the filters and the
omission of an edge. `partial_aggregates` has the rows that take the place of readings. `edge`, `joiner` and
`kafka` have the figures of one part each. Each figure says where it comes from: proven, measured, given,
declared, computed from others, or assumed. Nothing here asks a running fleet.
"""

"""Partial aggregates by slot: the number of a combination of pane and group is its slot in arrays.

Begin with `build`: it says what the classes of all kinds have in common, and chooses one for each `Partial`.
The inner loops are compiled (`kernels`), except those for extremes of texts (`tables`).
"""

"""The protocol of cuts as an executable model: partial aggregates of windows under random schedules.

Edges crash, move, and are cut off, and plans change; an oracle says which readings must be in which rows.
Begin with `rules.py`, then `chain.py` and `run.py`; `schedule.py` plays a schedule.
"""

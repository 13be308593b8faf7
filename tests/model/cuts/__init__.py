"""The protocol of cuts as an executable model: partial aggregates of windows under random schedules of
crashes, moves, outages and changed plans, with an oracle that says which readings must be in which rows.
Begin with `rules.py`, then `chain.py` and `run.py`; `schedule.py` plays a schedule.
"""

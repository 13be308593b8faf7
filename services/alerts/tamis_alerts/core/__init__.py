"""Alarms into episodes, pure: records in, events out; time and topics are passed in."""

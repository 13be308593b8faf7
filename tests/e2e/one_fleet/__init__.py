"""Tests in one fleet, in the order of their files: each has alerts and event times of its own.

A fleet takes half a minute of a core to start, and most tests of whole fleets need nothing else of a new one.
Streams and alerts stay after their test, so their names are different. Tests that post readings of `STREAMS`
begin at different event times, each later than the one before.
"""

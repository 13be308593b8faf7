"""Reckoning of installations that are larger than one machine, and a simulation of their queues."""

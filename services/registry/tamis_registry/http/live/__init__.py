"""Events as they come, and the console that shows them.

Begin with `broadcast`, which collects messages from the loop and from topics; `events` sends them to
clients.
"""

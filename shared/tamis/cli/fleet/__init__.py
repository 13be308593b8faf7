"""Subcommands for a whole fleet on this machine.

| module | contents |
|---|---|
| `up` | starts it, and shows how far the start is |
| `demo` | starts it on real readings, and reports |
| `doctor` | checks the machine and the fleet |
"""

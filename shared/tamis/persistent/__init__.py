"""Persistent collections: a changed copy shares all but a small part with the original.

| module | contents |
|---|---|
| `lists` | `PersistentList`: an immutable sequence, of which a part can be replaced in a copy |
| `dicts` | `PersistentDict`: a dictionary in the order of insertion, whose copies can be changed |
"""

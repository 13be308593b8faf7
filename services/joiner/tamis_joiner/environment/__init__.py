"""The environment of executors: an archive with Python, Tamis and its packages that travels with the job.

`contents` finds the files, and `pack` writes the archive. `unpacked` is for the joiner: the names under which
executors find the unpacked archive.
"""

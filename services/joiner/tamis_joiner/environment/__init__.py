"""The environment of executors: an archive with Python, Tamis and its packages that travels with the job.

Begin with `pack`, which writes the archive. `contents` finds its files, checks that an archive has this code,
and has the names under which executors find the unpacked archive.
"""

"""Archives of Java's classes, from which the JVMs of the broker and of Spark start (class data sharing).

An archive has the classes of a process that did the same, parsed and verified. It stands beside the jars.
`python -m tamis.archive_classes` makes it, and no JVM needs it. Java compares it with its own build and with
the jars on the class path, and loads classes from the jars if something differs.
"""

from __future__ import annotations

from pathlib import Path

from tamis.java.jars import Configuration, root

# Java warns of an archive that it can't use, on standard output, where others expect nothing of it.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def path(configuration: Configuration) -> Path:
    """The file of the archive."""
    return root() / f"{configuration}.jsa"


def options(configuration: Configuration) -> list[str]:
    """The options of a JVM that starts from the archive; none if there is no archive."""
    archive = path(configuration)
    return [f"-XX:SharedArchiveFile={archive}", *_SILENT] if archive.exists() else []


def recording(archive: Path) -> list[str]:
    """The options of a JVM that writes an archive of its classes at its end."""
    return [f"-XX:ArchiveClassesAtExit={archive}", *_SILENT]

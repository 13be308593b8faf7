"""Archive Java's classes: `python -m tamis.archive_classes`, a step of the set-up.

A broker and the joiner's Spark run their first batch, and write archives of their classes at their end. Later
JVMs start from these in about two thirds of the time (`tamis.java.class_archives`).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tamis.declarations.file_access import FileAccess
from tamis.errors import TamisError, UnavailableError
from tamis.java import class_archives
from tamis.java.jars import Configuration
from tamis.local.broker import EmbeddedKafka
from tamis.local.fleet import Fleet, FleetSpec
from tamis.settings import KafkaSettings
from tamis.telemetry import configure_logs
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import query
from tamis_joiner.spark.processes.unzipped_home import keep_unzipped_home
from tamis_joiner.spark.session import running_spark

# Spark and its first batch take about 20 s on two idle cores, and minutes on busy ones.
BATCH_SECONDS = 300.0
# A JVM writes its archive at its end, which takes some seconds.
END_SECONDS = 120.0
PARTITIONS = 1


def archive_classes(directory: Path) -> None:
    """Write both archives. `directory` is for the files of the processes."""
    keep_unzipped_home()
    broker, spark = directory / "broker.jsa", directory / "spark.jsa"
    fleet = Fleet(FleetSpec(directory, [], partitions=PARTITIONS), lambda _: None)
    fleet.broker = EmbeddedKafka(directory / "kafka", class_archive=class_archives.recording(broker))
    try:
        fleet.start_registry()
        _run_batch(fleet.kafka_settings(), directory / "checkpoint", class_archives.recording(spark))
        fleet.processes["registry"].stop()
        fleet.broker.stop(END_SECONDS)
    finally:
        fleet.stop()
    _install("broker", broker)
    _install("spark", spark)


def _run_batch(kafka: KafkaSettings, checkpoint: Path, class_archive: Sequence[str]) -> None:
    """Run the joiner's query until its first batch, which reads the registry's plan, has ended."""
    settings = JoinerSettings(checkpoint=str(checkpoint))
    with running_spark(
        settings, local_files=True, class_archive=class_archive, jvm_seconds=END_SECONDS
    ) as session:
        running = query.start(
            session,
            kafka,
            PARTITIONS,
            (checkpoint / "query").as_uri(),
            batch=settings.batch,
            file_access=FileAccess(),
        )
        deadline = time.monotonic() + BATCH_SECONDS
        while running.lastProgress is None:
            if not running.isActive or time.monotonic() > deadline:
                why = str(running.exception() or f"it took more than {BATCH_SECONDS:.0f} s")
                raise UnavailableError(f"Spark ended no batch: {why}")
            time.sleep(0.2)
        running.stop()


def _install(configuration: Configuration, archive: Path) -> None:
    if not archive.exists():
        raise UnavailableError(f"Java wrote no archive of the classes of the {configuration}")
    # Running JVMs have the old file mapped: it is replaced, not written.
    beside = class_archives.path(configuration).with_suffix(".new")
    shutil.copyfile(archive, beside)
    beside.replace(class_archives.path(configuration))


def main() -> int:
    """Write the archives. Without them Tamis only starts more slowly: the set-up goes on after a failure."""
    configure_logs("archive", "error", "text")
    with tempfile.TemporaryDirectory(prefix="tamis-classes-") as temporary:
        try:
            archive_classes(Path(temporary))
        except TamisError as error:
            print(
                f"no archives of Java's classes, so Kafka and Spark start more slowly: {error}",
                file=sys.stderr,
            )
            return 0
    sizes = ", ".join(f"{class_archives.path(name).stat().st_size >> 20} MB" for name in ("broker", "spark"))
    print(f"archives of the classes of the broker and of Spark: {sizes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

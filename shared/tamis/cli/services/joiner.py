"""`tamis joiner`: the service that joins the retained tuples of all streams and raises alarms."""

from __future__ import annotations

import signal
from types import FrameType

import click

from tamis.settings import KafkaSettings, ServiceSettings, TableSettings, load
from tamis.telemetry.health import end_after

# The last batch and the end of Spark take longer than a stop of the other services. Docker kills after ten
# seconds.
STOP_SECONDS = 9.5


@click.command(
    epilog="""\b
Example:
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 tamis joiner --checkpoint ./joiner --master 'local[2]'
"""
)
@click.option(
    "--checkpoint",
    metavar="DIRECTORY",
    help="Directory of offsets and state, or a URI (hdfs://, s3a://); by default `joiner` in TAMIS_DATA.",
)
@click.option(
    "--master",
    help="Spark's master: local[N] runs N tasks at a time in this process; spark://host:port is a cluster.",
)
def command(checkpoint: str | None, master: str | None) -> None:
    """Run the joiner: it evaluates all alerts in one Spark query; SIGTERM stops it."""
    from tamis_joiner.service import Joiner
    from tamis_joiner.settings import JoinerSettings
    from tamis_joiner.spark.session import leave

    settings = load(JoinerSettings)
    given = {name: value for name, value in (("checkpoint", checkpoint), ("master", master)) if value}
    settings = settings.model_copy(update=given)
    joiner = Joiner(load(ServiceSettings), load(KafkaSettings), settings, load(TableSettings))
    stopping = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if not stopping:
            stopping = True
            joiner.stop()
            end_after(STOP_SECONDS, leave)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    joiner.run()

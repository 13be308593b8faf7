"""`tamis joiner`: joins the retained tuples of all streams and raises the alarms."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

import click

from tamis.settings import KafkaSettings, ServiceSettings, TableSettings, load


@click.command(
    epilog="""\b
Example:
  TAMIS_KAFKA_BOOTSTRAP=broker:9092 tamis joiner --checkpoint ./joiner --master 'local[2]'
"""
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where offsets and state are kept; `joiner` under TAMIS_DATA by default.",
)
@click.option("--master", help="Spark's master: local[N] for N tasks at a time in this process.")
def command(checkpoint: Path | None, master: str | None) -> None:
    """Run the joiner: temporal joins of all alerts in one Spark query."""
    from tamis_joiner.service import Joiner
    from tamis_joiner.settings import JoinerSettings

    settings = load(JoinerSettings)
    given = {name: value for name, value in (("checkpoint", checkpoint), ("master", master)) if value}
    settings = settings.model_copy(update=given)
    joiner = Joiner(load(ServiceSettings), load(KafkaSettings), settings, load(TableSettings))

    def stop(signum: int, frame: FrameType | None) -> None:
        joiner.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    joiner.run()

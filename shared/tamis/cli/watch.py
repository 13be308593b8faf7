"""`tamis watch`: alarms and episodes as they come."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click
import orjson

from tamis.messaging.topics import ALARMS
from tamis.query.names import meant


@click.command(
    epilog="""\b
Examples:
  tamis watch
  tamis watch condensation --from-beginning
  tamis watch --json | jq .row
"""
)
@click.argument("alert", required=False)
@click.option("--from-beginning", is_flag=True, help="Also what Kafka still holds from before.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a line.")
@click.option(
    "--bootstrap",
    envvar="TAMIS_KAFKA_BOOTSTRAP",
    metavar="HOST:PORT",
    help="The Kafka cluster; by default TAMIS_KAFKA_BOOTSTRAP or 127.0.0.1:9092.",
)
def command(alert: str | None, from_beginning: bool, as_json: bool, bootstrap: str | None) -> None:
    """Show alarms and episodes as they come, from Kafka; Ctrl-C ends it."""
    from tamis.messaging.compacted import CompactedReader
    from tamis.messaging.topics import EPISODES
    from tamis.settings import KafkaSettings, load

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    settings = load(KafkaSettings)
    if bootstrap:
        settings = settings.model_copy(update={"bootstrap": bootstrap})
    with CompactedReader(settings.client_config(), [ALARMS, EPISODES]) as reader:
        for record in reader.snapshot():
            if from_beginning and record.value is not None:
                _show(record.topic, orjson.loads(record.value), alert, as_json)
        while not stopping.is_set():
            for record in reader.poll(0.5):
                if record.value is not None:
                    _show(record.topic, orjson.loads(record.value), alert, as_json)


def _show(topic: str, record: Mapping[str, Any], alert: str | None, as_json: bool) -> None:
    if alert is None or record["alert"] == meant(alert, {record["alert"]}):
        click.echo(orjson.dumps(record).decode() if as_json else line(topic, record))


def line(topic: str, record: Mapping[str, Any]) -> str:
    """One record for people.

    >>> line("tamis.alarms", {"alert": "hot", "key": ["k"], "event_time": 0, "row": {"t": 3.5}})
    '1970-01-01 00:00:00.000  alarm    hot  k  t=3.5'
    >>> over_shed = {"alert": "hot", "key": [], "event_time": 0, "row": {"t": 3.5}, "incomplete": True}
    >>> line("tamis.alarms", over_shed)
    '1970-01-01 00:00:00.000  alarm    hot  -  t=3.5  (incomplete: readings were shed)'
    >>> gone = {"alert": "many", "key": ["k"], "event_time": 0, "row": {"n": 3}, "withdrawn": True}
    >>> line("tamis.alarms", gone)
    '1970-01-01 00:00:00.000  alarm    many  k  n=3  (withdrawn: HAVING holds no more)'
    """
    key = ",".join(str(part) for part in record["key"]) or "-"
    row = "  ".join(f"{name}={value}" for name, value in record["row"].items())
    if topic == ALARMS:
        doubt = "  (incomplete: readings were shed)" if record.get("incomplete") else ""
        if record.get("withdrawn"):
            doubt += "  (withdrawn: HAVING holds no more)"
        return f"{_time(record['event_time'])}  alarm    {record['alert']}  {key}  {row}{doubt}"
    lasted = (record["end"] - record["start"]) / 1e6
    facts = f"{record['alarms']} alarms over {lasted:g} s" if record["event"] != "opened" else row
    return f"{_time(record['end'])}  {record['event']:<7}  {record['alert']}  {key}  {facts}"


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

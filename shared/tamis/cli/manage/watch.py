"""`tamis watch`: show alarms and episodes as they arrive in Kafka."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
import orjson

from tamis.cli.common.options import names_of
from tamis.cli.common.output import say, write, write_json
from tamis.cli.common.signals import stop_event
from tamis.cli.common.state_tables import SHORT, key_texts, shown
from tamis.cli.manage._followed import UNKNOWN, DefinitionFacts, Definitions, Silences
from tamis.declarations.units import parse_duration
from tamis.durations import iso_text
from tamis.errors import InputError, UnavailableError
from tamis.messaging.topics import ALARMS, EPISODES, PLANS, STATEMENTS
from tamis.printable import printable
from tamis.wording.names import normalized_name, suggest

if TYPE_CHECKING:
    from tamis.messaging.topic_reader import Record, TopicReader

_WAIT_SECONDS = 0.5
_ALERT = b"alert/"  # prefix of the keys of alerts in `tamis.statements`


@click.command(
    epilog="""\b
Examples:
  tamis watch
  tamis watch condensation --from-beginning
  tamis watch --since 1h
  tamis watch --json | jq .row
"""
)
@click.argument("alert", required=False, shell_complete=names_of("alert"))
@click.option(
    "--from-beginning", is_flag=True, help="Also show all earlier alarms and episodes that Kafka still has."
)
@click.option(
    "--since", metavar="DURATION", help="Also show what arrived within this time before now: 30s, 2h."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
@click.option(
    "--bootstrap",
    envvar="TAMIS_KAFKA_BOOTSTRAP",
    metavar="HOST:PORT",
    help="The address of Kafka; by default TAMIS_KAFKA_BOOTSTRAP or 127.0.0.1:9092.",
)
def command(
    alert: str | None, from_beginning: bool, since: str | None, as_json: bool, bootstrap: str | None
) -> None:
    """Show alarms and episodes as they arrive in Kafka; Ctrl-C stops it.

    Those that a silence covers are marked with its end.
    """
    from tamis.messaging.topic_reader import TopicReader
    from tamis.settings import KafkaSettings, load

    begin = _begin(from_beginning, since)
    stopping = stop_event()
    settings = load(KafkaSettings)
    if bootstrap:
        settings = settings.model_copy(update={"bootstrap": bootstrap})
    config = settings.client_config()
    with TopicReader(config, [ALARMS, EPISODES]) as reader:
        reader.follow(begin)
        if alert is not None:
            _check(config, alert, past=begin is not None)
        away = False
        definitions = Definitions(config, say)
        # A JSON document is the record as it is.
        silences = None if as_json else Silences(config, say)
        try:
            while not stopping.is_set():
                records = reader.poll(_WAIT_SECONDS)
                if silences is not None and not away:
                    silences.follow()
                for record in records:
                    _show(record, alert, definitions, silences)
                away = _report_kafka(reader, away)
        finally:
            if silences is not None:
                silences.close()


def _begin(from_beginning: bool, since: str | None) -> int | None:
    """The time from which records are shown, in milliseconds of Kafka; None: only new records."""
    if from_beginning and since is not None:
        raise InputError("--from-beginning and --since exclude each other", hint="give one of them")
    if since is None:
        return 0 if from_beginning else None
    span = parse_duration(since)
    if span < 0:
        raise InputError(f"'{since}' is negative", where="--since", hint="give how long ago, such as 1h")
    return max(0, int(time.time() * 1000) - span // 1000)


def _check(config: Mapping[str, Any], alert: str, past: bool) -> None:
    """Raises InputError if the alert is unknown, because nothing would ever be shown. The alert is looked up
    in Kafka and not at the registry, whose address may be that of another fleet.
    """
    try:
        known = _alerts(config)
        name = normalized_name(alert, known)
        if name in known:
            return
        if past and name in _before(config):
            say(f"alert '{name}' was dropped; what Kafka still has of it follows")
            return
    except UnavailableError as error:
        say(f"can't tell whether there is an alert '{alert}': {error}")
        return
    raise InputError(f"there is no alert '{name}'", hint=suggest(name, known))


def _alerts(config: Mapping[str, Any]) -> set[str]:
    """The names of all alerts, paused ones included."""
    from tamis.messaging.topic_reader import TopicReader

    found: set[str] = set()
    with TopicReader(config, [STATEMENTS]) as reader:
        for record in reader.snapshot():
            if record.key is not None and record.key.startswith(_ALERT):
                name = record.key.removeprefix(_ALERT).decode(errors="replace")
                (found.discard if record.value is None else found.add)(name)
    return found


def _before(config: Mapping[str, Any]) -> set[str]:
    """The names of alerts in all plans that Kafka still has."""
    from tamis.messaging.topic_reader import TopicReader
    from tamis.plan.json_form import alerts_of, version_of

    found: dict[int, set[str]] = {}
    with TopicReader(config, [PLANS]) as reader:
        for record in reader.snapshot():
            try:
                if record.value is not None and (version := version_of(record.value)) not in found:
                    found[version] = alerts_of(record.value)
            except InputError:
                continue  # the services report records that can't be read
    return {alert for alerts in found.values() for alert in alerts}


def _report_kafka(reader: TopicReader, away: bool) -> bool:
    """True if Kafka is away now; a change is reported once."""
    if reader.trouble is None or (away and reader.reachable(_WAIT_SECONDS)):
        if away:
            say("Kafka answers again")
        return False
    if not away:
        say(f"{reader.trouble}; waiting")
    return True


def _show(record: Record, alert: str | None, definitions: Definitions, silences: Silences | None) -> None:
    """Show a record; without `silences`, as JSON."""
    if record.value is None:
        return
    try:
        document = orjson.loads(record.value)
        if alert is not None and document["alert"] != normalized_name(alert, {document["alert"]}):
            return
        if silences is None:
            write_json(document, indented=False)
            return
        facts = definitions.of(document["alert"], document.get("definition"))
        # Episodes have severity and labels themselves.
        episode = {"severity": facts.severity, "labels": facts.labels, **document}
        text = line(record.topic, document, facts, silences.until(episode, record.timestamp * 1000))
        if sys.stdout.isatty():
            text = fitted(text, shutil.get_terminal_size().columns)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = f"{record.topic}, partition {record.partition}, offset {record.offset}"
        say(f"{place}: this record can't be read: {error!r}")
        return
    write(text)


def fitted(text: str, width: int) -> str:
    """A record in lines of a terminal: broken between its fields, and not inside of one.

    >>> print(fitted("1970-01-01T00:00:00.000Z  alarm    hot  k  t=3.5  u=4.25", 50))
    1970-01-01T00:00:00.000Z  alarm    hot  k  t=3.5
        u=4.25
    """
    first, *fields = text.split("  ")
    lines = [first]
    for field in fields:
        if len(lines[-1]) + 2 + len(field) > width:
            lines.append(f"    {field}")
        else:
            lines[-1] += f"  {field}"
    return "\n".join(lines)


def line(
    topic: str, record: Mapping[str, Any], facts: DefinitionFacts = UNKNOWN, silenced: int | None = None
) -> str:
    """One record for people. `facts`: of its alert. `silenced`: the end of the silences that cover it.

    >>> line("tamis.alarms", {"alert": "hot", "key": ["k"], "event_time": 0, "row": {"t": 3.5}})
    '1970-01-01T00:00:00.000Z  alarm    hot  k  t=3.5'
    >>> seen = {"alert": "hot", "key": ["k"], "event_time": 0, "row": {"ts": 1_500_000, "n": 1}}
    >>> line("tamis.alarms", seen, DefinitionFacts(frozenset({"ts"})))
    '1970-01-01T00:00:00.000Z  alarm    hot  k  ts=1970-01-01T00:00:01.500Z  n=1'
    >>> over_shed = {"alert": "hot", "key": [], "event_time": 0, "row": {"t": 3.5}, "incomplete": True}
    >>> line("tamis.alarms", over_shed)
    '1970-01-01T00:00:00.000Z  alarm    hot  -  t=3.5  (incomplete: readings were shed)'
    >>> gone = {"alert": "many", "key": ["k"], "event_time": 0, "row": {"n": 3}, "withdrawn": True}
    >>> line("tamis.alarms", gone)
    '1970-01-01T00:00:00.000Z  alarm    many  k  n=3  (withdrawn: HAVING holds no more)'
    >>> line("tamis.alarms", {"alert": "hot", "key": [None], "event_time": 0, "row": {"k": None, "on": True}})
    '1970-01-01T00:00:00.000Z  alarm    hot  NULL  k=NULL  on=true'
    >>> event = {"alert": "hot", "key": ["k"], "start": 0, "end": 0, "event": "opened", "row": {"t": 3.5}}
    >>> line("tamis.episodes", {**event, "episode": "9d41e07a9d41e07a9d41e07a9d41e07a"})
    '1970-01-01T00:00:00.000Z  opened   hot  k  t=3.5  episode 9d41e07a'
    >>> window = {"alert": "a", "key": ["k", 60_000_000], "event_time": 0, "row": {"n": 3}}
    >>> line("tamis.alarms", window, DefinitionFacts(key_times=(1,)), 3_600_000_000)
    '1970-01-01T00:00:00.000Z  alarm    a  k,1970-01-01T00:01:00Z  n=3  (silenced until 1970-01-01T01:00:00Z)'
    """
    key = printable(",".join(key_texts(record["key"], facts.key_times))) or "-"
    row = "  ".join(
        printable(f"{name}={iso_text(value)}" if _is_time(name, value, facts) else f"{name}={shown(value)}")
        for name, value in record["row"].items()
    )
    alert = printable(record["alert"])
    mark = "" if silenced is None else f"  (silenced until {iso_text(silenced, 'seconds')})"
    if topic == ALARMS:
        doubt = "  (incomplete: readings were shed)" if record.get("incomplete") else ""
        if record.get("withdrawn"):
            doubt += "  (withdrawn: HAVING holds no more)"
        return f"{iso_text(record['event_time'])}  alarm    {alert}  {key}  {row}{doubt}{mark}"
    lasted = (record["end"] - record["start"]) / 1e6
    what = f"{record['alarms']} alarms over {lasted:g} s" if record["event"] != "opened" else row
    identity = f"episode {record['episode'][:SHORT]}"
    event = f"{record['event']:<7}  {alert}  {key}"
    return f"{iso_text(record['end'])}  {event}  {what}  {identity}{mark}"


def _is_time(name: str, value: Any, facts: DefinitionFacts) -> bool:
    return name in facts.row_times and isinstance(value, int)

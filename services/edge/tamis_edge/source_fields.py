"""Fields in a source's configuration: checks of their texts, and the mapping of a reading to columns.

A wrong text would otherwise be taken literally and never match. Each check returns its text, or raises
ValueError with what would work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from tamis.messaging.topics import is_stream_name
from tamis.recordings.field_paths import FieldPath, of_column, parsed
from tamis.recordings.times import TimeUnit

STREAM = "{stream}"
SHARE = "$share"  # begins the filter of a shared subscription, before the group and the topic
_LONGEST_FILTER = 65_535  # bytes, in MQTT
_LONGEST_TOPIC = 249  # characters, in Kafka
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_HOST = re.compile(r"[^\s/:@]+|\[?[0-9A-Fa-f:.]+(%[^\s/\]]+)?\]?")


def _field_path(path: str) -> str:
    parsed(path)
    return path


def _bracketed(given: Any) -> Any:
    # In YAML, ["a.b"] without quotes around it is a list of one text.
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], str):
        name = given[0].replace("\\", "\\\\").replace('"', '\\"')
        return f'["{name}"]'
    return given


def _stream(name: str) -> str:
    if not is_stream_name(name):
        hint = ""
        if STREAM in name:
            hint = "; {stream} may only be a level of the topic of an MQTT source"
        elif name.startswith("tamis.stream."):
            hint = "; write the name in CREATE STREAM, not that of its topic"
        raise ValueError(
            f"{name!r} is no name of a stream: letters, digits and underscores; a source has one stream, or"
            f" several with `streams` (HTTP) or a level {STREAM} of the topic (MQTT){hint}"
        )
    return name


def _host(host: str) -> str:
    if not _HOST.fullmatch(host):
        raise ValueError(
            f"{host!r} is no host: write its name or address alone, its port in `port`, and `tls: true` in"
            " place of mqtts:// or ssl://"
        )
    return host


def _kafka_topic(topic: str) -> str:
    if not _TOPIC.fullmatch(topic) or len(topic) > _LONGEST_TOPIC or topic in (".", ".."):
        raise ValueError(
            f"{topic!r} is no name of a topic: up to {_LONGEST_TOPIC} letters, digits, dots, dashes and"
            " underscores; a source reads one topic, so add a source for each topic instead of a pattern or a"
            " list"
        )
    return topic


def levels(topic: str) -> Sequence[str]:
    """The levels of an MQTT filter as those of the topics that match it: without `$share` and its group.

    >>> levels("$share/edges/plant/{stream}")
    ['plant', '{stream}']
    """
    parts = topic.split("/")
    return parts[2:] if parts[0] == SHARE else parts


def _mqtt_filter(topic: str) -> str:
    """A filter of MQTT, in which a level may be `{stream}`."""
    parts = topic.split("/")
    if parts[0] == SHARE and (len(parts) < 3 or not parts[1] or set("+#{}") & set(parts[1])):
        raise ValueError(f"{topic!r} is no shared subscription: write $share/GROUP/TOPIC")
    below = levels(topic)
    if not "/".join(below):
        raise ValueError("the topic is empty; write `#` for all topics")
    if "\0" in topic or len(topic.encode()) > _LONGEST_FILTER:
        raise ValueError(f"a topic has at most {_LONGEST_FILTER:,} bytes, and no NUL")
    for number, level in enumerate(below):
        if level == STREAM:
            continue
        if "{" in level or "}" in level:
            with_plus = "/".join("+" if set("{}") & set(one) and one != STREAM else one for one in below)
            raise ValueError(
                f"only {STREAM} may stand in braces, as a whole level; write {with_plus!r}: + is any text in"
                " this level; a column takes its value from a field of the reading, not from the topic"
            )
        if "#" in level and (level != "#" or number < len(below) - 1):
            raise ValueError(
                f"# must be the last level, and all of it: {'/'.join([*below[:number], '#'])!r} has all"
                " topics below, and + is any text in one level"
            )
        if "+" in level and level != "+":
            raise ValueError(
                f"+ must be a whole level: {'/'.join([*below[:number], '+', *below[number + 1 :]])!r}; there"
                " is no pattern for a part of a level"
            )
        if level in ("*", "**", "%"):
            wild = "#" if level == "**" and number == len(below) - 1 else "+"
            raise ValueError(
                f"{level} has no meaning in MQTT: write"
                f" {'/'.join([*below[:number], wild, *below[number + 1 :]])!r}"
            )
    if below.count(STREAM) > 1:
        raise ValueError(f"{STREAM} stands in {below.count(STREAM)} levels; only one names the stream")
    return topic


FieldPathText = Annotated[str, BeforeValidator(_bracketed), AfterValidator(_field_path)]
StreamName = Annotated[str, AfterValidator(_stream)]
Host = Annotated[str, AfterValidator(_host)]
KafkaTopicName = Annotated[str, AfterValidator(_kafka_topic)]
MqttFilter = Annotated[str, AfterValidator(_mqtt_filter)]


@dataclass(frozen=True)
class FieldMap:
    """The mapping from the fields of a source's readings to a stream's columns.

    `fields`: the path of a column's value in a reading (`"data.temp"`); without a path the column's name is
    the path. `unit`: the time unit of TIMESTAMPs that are numbers; None: the
    unit that the stream declares, or microseconds.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit | None = None

    def path(self, column: str) -> FieldPath:
        """The path to a column's value. Raises ValueError if `fields` has none for it."""
        return parsed(self.fields[column]) if column in self.fields else of_column(column)

"""State of the fleet as tables: the columns of `tamis get`, and the rows of the registry's documents."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

import orjson

from tamis.doctor.registry import unusual
from tamis.durations import exact_text, iso_text, seconds
from tamis.printable import printable

HEADINGS = {
    "streams": ("STREAM", "KIND", "SHARDS", "TOPICS", "ALERTS", "WHY"),
    "alerts": ("ALERT", "STATE", "PLAN", "SINCE", "WHY"),
    "patterns": ("PATTERN", "KIND", "VALUES", "MAX_GAP", "READERS", "WHY"),
    "episodes": (
        *("EPISODE", "ALERT", "KEY", "SINCE", "LATEST ALARM", "ALARMS", "SEVERITY", "ACKNOWLEDGED"),
        "SILENCED",
    ),
    "plans": ("PLAN", "NEWEST", "MADE", "SHARDS", "WHY", "DEFINITIONS", "TOPICS"),
    "dead-letters": ("TIME", "SERVICE", "STREAM", "SOURCE", "REASON", "ERROR", "RECORD"),
    "silences": ("SILENCE", "STATE", "FROM", "UNTIL", "HOLDS BACK", "COVERS", "BY", "COMMENT"),
    "acknowledgements": ("EPISODE", "ALERT", "KEY", "SINCE", "BY", "COMMENT"),
    "edges": ("EDGE", "SHARD", "STATE", "PLAN", "SINCE", "WHY"),
    "joiner": ("JOINER", "STATE", "REPORTED", "PLAN", "COMPLETE UP TO", "TUPLES"),
    "sinks": ("SINK", "STATE", "WAITING", "SINCE", "WHY"),
}
# One document each, or documents without names in paths.
NAMELESS = ("silences", "acknowledgements", "episodes", "joiner", "sinks", "dead-letters")
# The reasons of a plan that its row has.
MOST_REASONS = 3
# The characters of an episode's identity that tables show; `tamis acknowledge` takes the beginning.
SHORT = 8
SAMPLE = 100  # the characters of a dead letter's record that tables show


def state_rows(what: str, entry: dict[str, Any]) -> list[tuple[str, ...]]:
    """The rows that show one document of `GET /v1/WHAT`."""
    match what:
        case "streams":
            active = sum(shard["state"] == "active" for shard in entry["shards"])
            shards = f"{active}/{len(entry['shards'])}" if entry["kind"] == "raw" else ""
            parts = (shards, ", ".join(entry["topics"]), ", ".join(entry["alerts"]), _why(entry))
            return [(entry["name"], entry["kind"], *parts)]
        case "alerts":
            since = max((a["event_time"] for a in entry["activations"].values()), default=None)
            if history := entry.get("history"):
                since = history["event_time"]
            why = "; ".join((*entry["why"], *_deleted(history)))
            return [(entry["name"], entry["state"], str(entry["plan"]), _since(since), why)]
        case "patterns":
            lengths = sorted({member["length"] for member in entry["members"]})
            values = " to ".join(map(str, dict.fromkeys((lengths[0], lengths[-1])))) if lengths else ""
            gap = next((seconds(member["max_gap"]) for member in entry["members"]), "")
            return [(entry["name"], entry["kind"], values, gap, ", ".join(entry["readers"]), _why(entry))]
        case "silences":
            facts = (_held(entry), covered(entry), entry["by"], entry["comment"])
            return [(entry["id"], entry["state"], _time(entry["from"]), _time(entry["until"]), *facts)]
        case "acknowledgements":
            # A registry of an older release, or one that may not read episodes, knows neither alert nor key.
            of = (entry.get("alert") or "", _key(entry))
            return [(entry["episode"], *of, _time(entry["made"]), entry["by"], entry["comment"])]
        case "episodes":
            return [_episode_row(entry)]
        case "dead-letters":
            return [_dead_letter_row(entry)]
        case "joiner":
            return _joiner_rows(entry)
        case "sinks":
            # A registry of an older release counts events that aren't read as waiting.
            unread = entry.get("unread", 0)
            waiting = f"{entry['waiting']}" + (f" and {unread} unread" if unread else "")
            return [(entry["name"], entry["state"], waiting, _time(entry["oldest"]), _why(entry))]
        case "plans":
            definitions, topics = ", ".join(entry["definitions"]), ", ".join(entry["topics"])
            newest = "yes" if entry["newest"] else ""
            # A registry of an older release knows neither when nor why.
            made = (newest, _time(entry.get("made")), str(entry["shards"]), _first(entry.get("why", ())))
            return [(str(entry["version"]), *made, definitions, topics)]
        case _:
            name = entry["name"]
            lines = [
                (
                    name,
                    shard["shard"],
                    shard["state"],
                    "" if shard["plan"] is None else str(shard["plan"]),
                    _since(shard["activation"]),
                    "; ".join(_reasons(shard)),
                )
                for shard in entry["shards"]
            ] or [(name, "", entry["state"], "", "", entry["why"][0])]
            # A registry of an older release doesn't know which sources fail.
            failing = entry.get("failing", {}).items()
            return [*lines, *((name, f"source {source}", "failing", "", "", why) for source, why in failing)]


def _reasons(shard: dict[str, Any]) -> Iterator[str]:
    """The reasons for a shard's state, and to look at its readings."""
    if shard["why"]:
        yield shard["why"]
    # A registry of an older release doesn't know what is doubtful.
    yield from shard.get("doubts", ())
    yield from unusual(shard)


def _episode_row(episode: dict[str, Any]) -> tuple[str, ...]:
    by = episode["acknowledged"]
    return (
        episode["episode"][:SHORT],
        episode["alert"],
        _key(episode),
        _time(episode["start"]),
        _time(episode["end"]),
        str(episode["alarms"]),
        episode["severity"] or "",
        "" if by is None else f"by {by['by']}" if by["by"] else "yes",
        "" if episode["silenced"] is None else f"until {_time(episode['silenced'])}",
    )


def _dead_letter_row(letter: dict[str, Any]) -> tuple[str, ...]:
    # A registry of an older release knows neither edge nor stream, nor does a dead letter of an older edge.
    service = f"{letter['service']} {letter.get('edge') or ''}".rstrip()
    source = f"{letter['source']} {letter['source_partition']}:{letter['source_offset']}"
    if letter["sink"]:
        source = f"sink {letter['sink']}"
    record = letter["text"] if letter["text"] is not None else f"base64: {letter['base64']}"
    facts = (letter["reason"], letter["error"], printable(record, SAMPLE))
    stream = printable(letter.get("stream") or "", SAMPLE)
    return (_time(letter["time"]), service, stream, source, *facts)


def _joiner_rows(joiner: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for the whole joiner, one for each output partition, and one for each topic that it reads."""
    partitions = joiner["partitions"]
    frontiers = [one["frontier"] for one in partitions]
    least = None if None in frontiers else min(frontiers, default=None)
    tuples = sum(one["tuples"] for one in partitions)
    ago = joiner.get("reported_ago")
    facts = ("" if ago is None else f"{ago} s ago", str(joiner["plan"]), _reached(least), str(tuples))
    rows: list[tuple[str, ...]] = [("all", joiner["state"], *facts)]
    for one in partitions:
        facts = ("", str(one["plan"]), _reached(one["frontier"]), str(one["tuples"]))
        rows.append((f"partition {one['partition']}", "", *facts))
    for one in joiner["topics"]:
        facts = ("", "", _reached(one["frontier"]), str(one["tuples"]))
        rows.append((one["topic"], "", *facts))
    return rows


def _reached(frontier: int | None) -> str:
    """The event time below which the joiner is complete."""
    from tamis.messaging.records import END_OF_TIME

    return "the end of its sources" if frontier == END_OF_TIME else _time(frontier)


def state_notes(what: str, entry: dict[str, Any]) -> list[str]:
    """The reasons that are too long for a cell, each behind the name of its row."""
    if what != "joiner":
        return []
    named = [("all", entry["why"]), *((one["topic"], one["why"]) for one in entry["topics"])]
    notes = [f"{name}: {reason}" for name, reasons in named for reason in reasons]
    # A registry of an older release doesn't know the process.
    process = entry.get("process") if entry["state"] != "running" else None
    return [*notes, *([f"all: it is {process}"] if process else [])]


def shown(value: Any) -> str:
    """A value as SQL and JSON write it."""
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def key_texts(key: Sequence[Any], times: Container[int]) -> list[str]:
    """The values of a key. `times`: the positions of those that are times.

    >>> key_texts(["k", 60_000_000, None], [1])
    ['k', '1970-01-01T00:01:00Z', 'NULL']
    """
    return [
        exact_text(value) if place in times and type(value) is int else shown(value)
        for place, value in enumerate(key)
    ]


def _key(entry: dict[str, Any]) -> str:
    """The key of an episode; empty if it isn't known."""
    # A registry of an older release doesn't know which values are times.
    return ", ".join(key_texts(entry.get("key") or (), entry.get("key_times", ())))


def covered(silence: dict[str, Any]) -> str:
    """The conditions of a silence in words.

    >>> some = {"alerts": ["hot"], "severities": None, "labels": {"team": ["ops", "dev"]}}
    >>> covered({**some, "keys": [["k1", 3]]})
    'alert hot; team=ops|dev; key k1,3'
    """
    parts = [f"alert {', '.join(silence['alerts'])}"] if silence["alerts"] is not None else []
    if silence["severities"] is not None:
        parts.append(f"severity {', '.join(silence['severities'])}")
    parts += [f"{name}={'|'.join(values)}" for name, values in silence["labels"].items()]
    if silence["keys"] is not None:
        parts.append(f"key {' or '.join(','.join(map(str, key)) for key in silence['keys'])}")
    return "; ".join(parts)


def _held(silence: dict[str, Any]) -> str:
    """Openings that a silence holds back now, in words; empty if it is not active.

    >>> _held({"state": "active", "held_episodes": 1, "held_notifications": 2})
    '2 openings of 1 episode'
    """
    # A registry of an older release doesn't know it.
    if silence["state"] != "active" or "held_notifications" not in silence:
        return ""
    openings, episodes = silence["held_notifications"], silence["held_episodes"]
    return f"{_count(openings, 'opening')} of {_count(episodes, 'episode')}" if openings else "nothing"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _deleted(history: dict[str, Any] | None) -> Iterator[str]:
    """The parts of an alert's history that its sources no longer had."""
    for name, shard in history["shards"].items() if history else ():
        if shard["first_offset"]:
            yield (
                f"{name} begins at offset {shard['first_offset']}, {_time(shard['event_time'])}: Kafka has "
                "deleted earlier readings"
            )


def _why(entry: dict[str, Any]) -> str:
    return "; ".join(entry["why"])


def _first(reasons: Sequence[str]) -> str:
    """The first reasons, and the number of the others.

    >>> _first(["a", "b"]), _first(["a", "b", "c", "d", "e"])
    ('a; b', 'a; b; c; 2 more')
    """
    left = len(reasons) - MOST_REASONS
    return "; ".join([*reasons[:MOST_REASONS], *([f"{left} more"] if left > 0 else [])])


def _since(event_time: int | None) -> str:
    """The event time from which a shard serves a definition; 0 if the shard had no earlier reading."""
    return "its first reading" if event_time == 0 else _time(event_time)


def _time(microseconds: int | None) -> str:
    return "" if microseconds is None else iso_text(microseconds, "seconds")

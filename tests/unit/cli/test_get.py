"""`tamis get`: what it shows of the registry's answers."""

from __future__ import annotations

import re
from typing import Any

from click.testing import CliRunner
from tests.unit.cli.answering import answering

from tamis.cli import main
from tamis.messaging.records import END_OF_TIME

SHARD = {
    "shard": "air:roof/mqtt",
    "state": "active",
    "plan": 3,
    "activation": 1_700_000_000_000_000,
    "why": "",
}
EDGE = {"name": "roof", "state": "active", "why": [], "shards": [SHARD]}


def get(edge: dict[str, Any]) -> list[str]:
    with answering({"/v1/edges": [edge]}) as url:
        result = CliRunner().invoke(main, ["get", "edges", "--registry", url])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()[1:]


def test_failing_sources_of_an_edge_have_lines_with_the_reason() -> None:
    shard, source = get({**EDGE, "failing": {"mqtt": "broker:1883: connection refused"}})
    assert shard.split() == ["roof", "air:roof/mqtt", "active", "3", "2023-11-14T22:13:20Z"]
    assert source.split(maxsplit=4)[:4] == ["roof", "source", "mqtt", "failing"]
    assert source.endswith("broker:1883: connection refused")


def test_an_edge_without_shards_has_a_line_of_its_own() -> None:
    why = ["edge roof has no shard: none of its sources has had a reading yet", "source mqtt fails: refused"]
    edge = {"name": "roof", "state": "waiting", "why": why, "failing": {"mqtt": "refused"}, "shards": []}
    itself, source = get(edge)
    assert itself.split(maxsplit=2) == ["roof", "waiting", why[0]]
    assert source.split() == ["roof", "source", "mqtt", "failing", "refused"]


def test_the_line_of_a_shard_counts_dead_letters_and_late_readings_of_the_last_minutes() -> None:
    recent = {"seconds": 400, "tuples": {"published": 90, "late": 4, "dead": 6}}
    (line,) = get({**EDGE, "shards": [{**SHARD, "recent": recent}]})
    dead, late = "6 of 100 readings became dead letters", "4 of 100 readings were late"
    assert line.endswith(f"{dead} in the last 400 s; {late} in the last 400 s")


def test_a_registry_of_an_older_release_names_no_failing_sources() -> None:
    assert len(get(EDGE)) == 1


def shown(what: str, answer: object, *more: str) -> tuple[int, str]:
    with answering({f"/v1/{what}": answer}) as url:
        result = CliRunner().invoke(main, ["get", what, *more, "--registry", url], env={"COLUMNS": "200"})
    return result.exit_code, result.output


PARTITION = {"partition": 0, "plan": 3, "frontier": 1_700_000_000_000_000, "tuples": 5}
JOINER: dict[str, Any] = {
    "state": "silent",
    "why": ["the joiner has reported nothing since 2026-03-01T08:29:58Z"],
    "reported_ago": 40,
    "plan": 3,
    "partitions": [PARTITION, {**PARTITION, "partition": 1, "tuples": 7, "frontier": 1_700_000_001_000_000}],
    "topics": [{"topic": "tamis.stream.air.1", "frontier": None, "tuples": 12, "why": ["shard s waits"]}],
}


def test_the_joiner_is_a_row_with_one_more_for_each_partition_and_topic() -> None:
    code, output = shown("joiner", JOINER)
    _, whole, first, second, topic, empty, *notes = output.splitlines()
    assert code == 0
    assert whole.split() == ["all", "silent", "40", "s", "ago", "3", "2023-11-14T22:13:20Z", "12"]
    assert (empty, notes) == (
        "",
        [
            "all: the joiner has reported nothing since 2026-03-01T08:29:58Z",
            "tamis.stream.air.1: shard s waits",
        ],
    )
    assert first.split() == ["partition", "0", "3", "2023-11-14T22:13:20Z", "5"]
    assert second.split() == ["partition", "1", "3", "2023-11-14T22:13:21Z", "7"]
    assert topic.split() == ["tamis.stream.air.1", "12"]
    code, output = shown("joiner", JOINER, "x")
    assert code == 2 and "takes no name" in output


def test_where_sources_have_ended_the_joiner_is_complete_up_to_their_end() -> None:
    topic = {**JOINER["topics"][0], "frontier": END_OF_TIME}
    ended = {**JOINER, "partitions": [{**PARTITION, "frontier": END_OF_TIME}], "topics": [topic]}
    _, *rows = shown("joiner", ended)[1].splitlines()
    assert [re.split("  +", row)[-2] for row in rows[:3]] == ["the end of its sources"] * 3


def test_a_joiner_that_has_joined_nothing_has_no_event_time() -> None:
    fresh = {**JOINER, "state": "unknown", "reported_ago": None, "partitions": []}
    assert shown("joiner", fresh)[1].splitlines()[1].split()[:3] == ["all", "unknown", "3"]


PLAN = {"version": 7, "newest": True, "definitions": ["hot@7"], "topics": ["t"], "shards": 2}


def test_plans_have_their_time_and_what_made_them() -> None:
    why = ["CREATE ALERT hot AS", "shard s1 came", "shard s2 came", "shard s3 came"]
    older = {**PLAN, "version": 6, "newest": False}  # as a registry of an older release tells it
    plans = [{**PLAN, "made": 1_700_000_000_000_000, "why": why}, older]
    code, output = shown("plans", plans)
    heading, newest, before = output.splitlines()
    assert code == 0 and heading.split() == [
        "PLAN",
        "NEWEST",
        "MADE",
        "SHARDS",
        "WHY",
        "DEFINITIONS",
        "TOPICS",
    ]
    said = "CREATE ALERT hot AS; shard s1 came; shard s2 came; 1 more"
    assert newest.split(maxsplit=4) == ["7", "yes", "2023-11-14T22:13:20Z", "2", f"{said}  hot@7        t"]
    assert before.split() == ["6", "2", "hot@7", "t"]


def test_sinks_have_what_waits_and_why() -> None:
    sink = {"name": "pager", "state": "failing", "waiting": 2, "oldest": 1_700_000_000_000_000}
    code, output = shown("sinks", [{**sink, "why": ["sink pager: 2 wait: HTTP status 503"]}])
    assert code == 0 and output.splitlines()[1].split(maxsplit=4) == [
        *("pager", "failing", "2", "2023-11-14T22:13:20Z"),
        "sink pager: 2 wait: HTTP status 503",
    ]


def test_events_that_the_queue_of_a_sink_has_not_read_are_told_apart() -> None:
    sink = {"name": "pager", "state": "behind", "waiting": 1000, "unread": 25, "oldest": None, "why": []}
    assert "behind  1000 and 25 unread" in shown("sinks", [sink])[1]


EPISODE = {
    "episode": "9d41e07a9d41e07a9d41e07a9d41e07a",
    "alert": "hot",
    "key": ["k1", None],
    "start": 1_700_000_000_000_000,
    "end": 1_700_000_060_000_000,
    "alarms": 7,
    "severity": "page",
    "labels": {},
    "acknowledged": {"by": "ci", "comment": ""},
    "silenced": 1_700_003_600_000_000,
}


def episodes(*found: dict[str, Any], complete: bool = True) -> tuple[int, str]:
    return shown("episodes", {"episodes": found, "complete": complete, "read": 9, "unreadable": 0})


def test_open_episodes_have_who_looks_after_them_and_the_end_of_their_silence() -> None:
    code, output = episodes(EPISODE, {**EPISODE, "acknowledged": None, "silenced": None, "severity": None})
    _, first, second = output.splitlines()
    assert code == 0
    facts = ["9d41e07a", "hot", "k1, NULL", "2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z", "7"]
    assert re.split(" {2,}", first) == [*facts, "page", "by ci", "until 2023-11-14T23:13:20Z"]
    assert re.split(" {2,}", second) == facts


def test_times_in_keys_of_episodes_are_times() -> None:
    found = {**EPISODE, "key": ["k1", 1_700_000_000_500_000, 7], "key_times": [1]}
    assert "k1, 2023-11-14T22:13:20.5Z, 7 " in episodes(found)[1]


def test_acknowledgements_have_the_alert_and_the_key_of_their_episodes() -> None:
    made = {"episode": EPISODE["episode"], "by": "ci", "comment": "on my way", "made": 1_700_000_000_000_000}
    known = {**made, "alert": "hot", "key": ["k1", 1_700_000_000_000_000], "key_times": [1]}
    # The second is of a registry of an earlier release.
    _, first, second = shown("acknowledgements", [known, made])[1].splitlines()
    end = ["2023-11-14T22:13:20Z", "ci", "on my way"]
    assert re.split(" {2,}", first) == [made["episode"], "hot", "k1, 2023-11-14T22:13:20Z", *end]
    assert re.split(" {2,}", second) == [made["episode"], *end]


def test_silences_say_what_they_hold_back() -> None:
    silence = {
        "id": "5f0c", "state": "active", "from": 0, "until": 0, "alerts": ["hot"], "severities": None,
        "labels": {}, "keys": None, "by": "", "comment": "",
    }  # fmt: skip
    counts = {"held_episodes": 1, "held_notifications": 3}
    found = [{**silence, **counts}, {**silence, "held_episodes": 0, "held_notifications": 0}, silence]
    lines = shown("silences", [*found, {**silence, **counts, "state": "over"}])[1].splitlines()
    assert [line.split("1970-01-01T00:00:00Z")[-1].split("alert")[0].strip() for line in lines[1:]] == [
        *("3 openings of 1 episode", "nothing", "", "")
    ]


def test_without_open_episodes_and_with_more_of_them_get_says_so() -> None:
    assert "there are no open episodes" in episodes()[1]
    assert "only the newest 9 events" in episodes(EPISODE, complete=False)[1]
    code, output = shown("episode", {})
    assert code == 2 and "did you mean 'episodes'?" in output
    code, output = shown("episodes", {}, "hot")
    assert code == 2 and "takes no name" in output


def test_doubts_about_the_readings_of_a_shard_stand_behind_the_reason_of_its_state() -> None:
    doubt = "none of the last 100 readings has a value for temp (field v.tmep): compare `map` with them"
    (line,) = get({**EDGE, "shards": [{**SHARD, "doubts": [doubt]}]})
    assert line.endswith(f"2023-11-14T22:13:20Z  {doubt}")
    (line,) = get({**EDGE, "shards": [{**SHARD, "why": "behind", "doubts": [doubt]}]})
    assert line.endswith(f"  behind; {doubt}")


def test_a_shard_without_earlier_readings_serves_from_its_first_reading_and_not_from_1970() -> None:
    (line,) = get({**EDGE, "shards": [{**SHARD, "activation": 0}]})
    assert line.endswith("  3     its first reading")


LETTER = {
    "partition": 0,
    "offset": 7,
    "time": 1_700_000_000_000_000,
    "reason": "undecodable",
    "error": "no JSON",
    "service": "edge",
    "source": "raw.air",
    "source_partition": 3,
    "source_offset": 12,
    "edge": "roof",
    "stream": "air\x1b[2J",
    "sink": None,
    "bytes": 3,
    "text": "\x1b[2J{",
    "base64": None,
}
LETTERS = {"records": [LETTER], "reasons": {"undecodable": 1}, "complete": True, "read": 1, "unreadable": 0}


def test_dead_letters_name_their_edge_and_do_not_move_the_cursor() -> None:
    code, output = shown("dead-letters", LETTERS)
    assert code == 0
    assert output.splitlines()[1].split(maxsplit=7) == [
        "2023-11-14T22:13:20Z",
        "edge",
        "roof",
        "air\\x1b[2J",
        "raw.air",
        "3:12",
        "undecodable",
        "no JSON  \\x1b[2J{",
    ]
    older = {name: value for name, value in LETTER.items() if name not in ("edge", "stream")}
    _, output = shown("dead-letters", {**LETTERS, "records": [older], "complete": False, "read": 9})
    assert output.splitlines()[1].split()[1:3] == ["edge", "raw.air"]
    assert "the newest ones of the 9 that were looked at; there may be more" in output


def test_options_of_dead_letters_reach_the_registry_and_are_refused_elsewhere() -> None:
    with answering({"/v1/dead-letters?limit=5&reason=nan": LETTERS}) as url:
        arguments = ["get", "dead-letters", "--limit", "5", "--reason", "nan", "--registry", url]
        assert CliRunner().invoke(main, arguments).exit_code == 0
    code, output = shown("alerts", [], "--limit", "5")
    assert code == 2
    assert "--limit: only dead letters have a limit and reasons; run: tamis get dead-letters" in output

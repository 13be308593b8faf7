"""Silences and acknowledgements over HTTP and by command, in Kafka, and after a restart of the registry."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
from click.testing import CliRunner
from confluent_kafka import Producer
from tests.integration.registry.test_registry_http import problem
from tests.unit.registry.test_openapi import Made

from tamis.cli import main
from tamis.messaging.column_names import ColumnNames
from tamis.messaging.silences import Held, Silence, decode, encode
from tamis.messaging.topics import EPISODES, SILENCES

EPISODE = "0123456789abcdef0123456789abcdef"
KEY = "k1, 1970-01-01T00:00:00.000005Z"
CLOSED = "0123ffff89abcdef0123456789abcdef"


def test_silences_and_acknowledgements(fresh: str, start: Any, sql: Any, hand: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    plans = registry.get("plans")

    def post(path: str, document: Any) -> httpx.Response:
        return httpx.post(f"{registry.server.url}/v1/{path}", json=document, timeout=40)

    def tamis(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*arguments, "--registry", registry.server.url])
        return done.exit_code, done.output

    for refused, status, word in (
        (post("silences", {"alerts": ["hott"], "seconds": 9}), 400, "did you mean 'hot'"),
        (post("silences", {"seconds": 9}), 400, "without a condition"),
        (post("silences", {"alerts": ["hot"], "seconds": 9, "colour": 1}), 400, "colour"),
        (post("silences", {"alerts": ["hot"], "seconds": -1}), 400, "seconds"),
        (post("silences", {"alerts": ["hot"], "seconds": 9, "comment": "c" * 1001}), 400, "comment"),
        (post("silences", []), 400, "body"),
        (post("episodes/nobody/acknowledgement", {}), 400, "episode"),
        (post(f"episodes/{EPISODE}/acknowledgement", {}), 404, "no open episode has the identity"),
        (registry.call("DELETE", f"/v1/silences/{EPISODE}"), 404, "no silence"),
        (registry.call("DELETE", f"/v1/episodes/{EPISODE}/acknowledgement"), 404, "no acknowledgement"),
    ):
        assert word in str(problem(refused, status)), refused.text
    assert registry.get("silences") == registry.get("acknowledgements") == []

    answer = post(
        "silences",
        {"alerts": ["Hot"], "keys": [["k1", "1970-01-01T00:00:00.000005Z"]], "seconds": 900, "by": "me"},
    )
    assert answer.status_code == httpx.codes.CREATED
    made = answer.json()
    Made().check("/v1/silences", made, "post", "201")
    assert made.pop("warnings") == []
    assert (made["alerts"], made["state"], made["until"] - made["from"]) == (["hot"], "active", 900_000_000)
    code, said = tamis("silence", "--label", "team=ops", "--label", "team=dev", "--key", "[1]", "--for", "2h")
    assert code == 0 and "team=ops|dev; key 1" in said
    assert "warning: no alert has a label 'team'; no alert has any" in said
    assert tamis("silence", "hot", "--for", "0s")[0] == 2
    assert tamis("silence", "--label", "ops", "--for", "1h")[0] == 2

    def happened(episode: str, event: str) -> None:
        start = 1_700_000_000_000_000
        document = {
            "alert": "hot", "key": ["k1", 5], "episode": episode, "event": event, "start": start,
            "end": start + 60_000_000, "alarms": 7, "row": {}, "severity": None, "labels": {},
        }  # fmt: skip
        headers = ColumnNames(("k", "begin"), key_times=("begin",)).headers
        producer = Producer({"bootstrap.servers": fresh})
        producer.produce(EPISODES, orjson.dumps(document), b'["hot","k1"]', 0, headers=dict(headers))
        assert producer.flush(10) == 0

    # Only an open episode can be acknowledged; the beginning of its identity is enough.
    happened(CLOSED, "opened")
    happened(CLOSED, "closed")
    happened(EPISODE, "opened")
    code, said = tamis("acknowledge", CLOSED)
    assert code != 0 and f"no open episode has the identity '{CLOSED}'; the episode has closed" in said
    code, said = tamis("acknowledge", "abcd")
    assert (
        code != 0
        and "no open episode has an identity that begins with 'abcd'" in said
        and "tamis watch" in said
    )
    code, said = tamis("acknowledge", EPISODE[:6], "--comment", "on my way")
    assert (code, said.startswith(f"episode {EPISODE} acknowledged")) == (0, True)
    found = registry.get("episodes")
    Made().check("/v1/episodes", found)
    (open_one,) = found["episodes"]
    assert (open_one["episode"], open_one["silenced"], found["read"]) == (EPISODE, made["until"], 3)
    assert open_one["acknowledged"]["comment"] == "on my way" and found["complete"]
    code, said = tamis("get", "episodes")
    assert code == 0 and f"{EPISODE[:8]}  hot    {KEY}  2023-11-14T22:13:20Z  2023-11-14T22:14:20Z  7" in said

    # The alerts service holds an opening, and writes so into the same topic.
    opened: dict[str, Any] = {
        "episode": EPISODE, "alert": "hot", "event": "opened", "key": ["k1", 5], "start": 1, "end": 2,
        "alarms": 1, "row": {}, "severity": None, "labels": {},
    }  # fmt: skip
    held = Held(sink="pager", partition=0, offset=1, event=opened)
    other = Held(sink="chat", partition=0, offset=1, event=opened)
    assert "nothing" in tamis("get", "silences")[1]

    def holds_back() -> tuple[int, int]:
        """Openings and episodes of the first silence."""
        first, _ = registry.get("silences")
        return first["held_notifications"], first["held_episodes"]

    hand(fresh).garbage(SILENCES, encode(other), other.record_key)
    hand(fresh).garbage(SILENCES, encode(held), held.record_key)
    registry.until(lambda: holds_back() == (2, 1))
    assert "2 openings of 1 episode  alert hot; key k1,1970" in tamis("get", "silences")[1]
    hand(fresh).garbage(SILENCES, None, other.record_key)
    registry.until(lambda: holds_back() == (1, 1))
    hand(fresh).garbage(SILENCES, b"no record", b"silence/garbage")
    registry.stop()
    registry = start(fresh).ready()
    first, second = registry.get("silences")
    assert holds_back() == (1, 1)
    assert first == {**made, "held_notifications": 1, "held_episodes": 1}
    assert second["labels"] == {"team": ["ops", "dev"]} and second["keys"] == [[1]]
    shapes = Made()
    shapes.check("/v1/silences", [first, second])
    (acknowledged,) = registry.get("acknowledgements")
    assert (acknowledged["episode"], acknowledged["comment"]) == (EPISODE, "on my way")
    shapes.check("/v1/acknowledgements", [acknowledged])
    shapes.check("/v1/episodes/{episode}/acknowledgement", acknowledged, "post", "201")
    code, said = tamis("get", "silences")
    assert code == 0 and "alert hot; key k1" in said
    assert (acknowledged["alert"], acknowledged["key"], acknowledged["key_times"]) == ("hot", ["k1", 5], [1])
    assert f"{EPISODE}  hot    {KEY}" in tamis("get", "acknowledgements")[1]
    assert tamis("get", "silences", "hot")[0] == 2
    assert tamis("unsilence", "x")[0] == 2
    assert tamis("unsilence", first["id"][:8])[0] == 0
    assert tamis("acknowledge", EPISODE[:4], "--undo")[0] == 0
    assert [one["id"] for one in registry.get("silences")] == [second["id"]]
    assert registry.get("acknowledgements") == []
    records = {r.key: r.value for r in hand(fresh).records(SILENCES) if r.key != b"silence/garbage"}
    found = [decode(key, value) for key, value in records.items() if value is not None]
    assert {type(one) for one in found} == {Silence, Held} and len(found) == 2
    assert orjson.loads(encode(found[0]))["kind"] in ("silence", "held")
    assert [one["version"] for one in plans] == [p["version"] for p in registry.get("plans")][-len(plans) :]


# As JSON, since Python's client would refuse some of them.
SPOILED = (
    '{"keys": [[NaN]], "seconds": 9}',
    '{"keys": [[-Infinity]], "seconds": 9}',
    '{"keys": [[1e999]], "seconds": 9}',
    '{"keys": [[%s]], "seconds": 9}' % ("9" * 40),
    '{"keys": [[18446744073709551615]], "seconds": 9}',
    '{"keys": [["\\ud800"]], "seconds": 9}',
    '{"keys": [[[1]]], "seconds": 9}',
    '{"alerts": ["hot"], "seconds": 9, "comment": "\\ud800"}',
    '{"alerts": ["hot"], "seconds": 9, "by": "\\udfff"}',
    '{"labels": {"\\ud800": ["x"]}, "seconds": 9}',
    '{"alerts": ["hot"], "seconds": 9, "\\ud800": 1}',
    '{"alerts": ["\\ud800"], "seconds": 9}',
    '{"alerts": ["hot"], "seconds": NaN}',
    '{"alerts": ["hot"], "seconds": 1e999}',
    '{"alerts": ["hot"], "until": %s}' % ("9" * 40),
    '{"alerts": ["hot"], "from": -%s, "until": 5}' % ("9" * 40),
    '{"seconds": 9, "keys": [' + ", ".join(['["' + "k" * 990 + '"]'] * 900) + "]}",
    "[" * 100_000,
    '{"labels": ' * 50_000,
    "{" + ", ".join(f'"name{i}": 1' for i in range(50_000)) + "}",
)


def test_a_value_that_spoils_the_topic_is_refused(fresh: str, start: Any, sql: Any) -> None:
    registry = start(fresh).ready()
    registry.sql(sql())
    json = {"content-type": "application/json"}
    for text in SPOILED:
        for path in ("/v1/silences", f"/v1/episodes/{EPISODE}/acknowledgement"):
            answer = registry.call("POST", path, text, **json)
            assert answer.status_code == 400 and len(answer.content) < 20_000, (text[:80], answer.text[:300])
    key = '[9223372036854775807, 0.5, null, true, "\\ud83d\\ude00"]'
    good = '{"alerts": ["hot"], "seconds": 60, "keys": [' + key + "]}"
    assert registry.call("POST", "/v1/silences", good, **json).status_code == 201
    (made,) = registry.get("silences")
    assert made["keys"] == [[2**63 - 1, 0.5, None, True, "😀"]]
    registry.stop()
    assert [one["keys"] for one in start(fresh).ready().get("silences")] == [made["keys"]]

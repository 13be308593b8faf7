"""`GET /v1/episodes`: which episodes are open, who looks after them, and how long they are silenced."""

from __future__ import annotations

from typing import Any

from tamis.messaging.silences import Acknowledgement, Silence
from tamis_registry.http.state.episodes import Event, open_episodes

NOW = 100


def event(episode: str, what: str, start: int = 1, end: int = 2, **more: Any) -> Event:
    facts = {"alert": "hot", "key": ("k1",), "alarms": 1, "severity": "page", "labels": {"team": "ops"}}
    return Event(episode=episode, event=what, start=start, end=end, **{**facts, **more})


def silence(until: int, start: int = 0, **conditions: Any) -> Silence:
    return Silence(id="s", start=start, until=until, **conditions)


def test_an_episode_is_open_by_its_newest_event() -> None:
    events = [
        event("over", "closed", 5, 9),
        event("long", "open", 3, 8, alarms=4),
        event("over", "opened", 5),
        event("new", "opened", 7, 7),
        event("long", "opened", 3),
    ]
    found = open_episodes(events, [], [], NOW)
    assert [(one["episode"], one["start"], one["end"], one["alarms"]) for one in found] == [
        ("new", 7, 7, 1),
        ("long", 3, 8, 4),
    ]
    assert found[0] == {
        "episode": "new", "alert": "hot", "key": ["k1"], "key_times": [], "start": 7, "end": 7, "alarms": 1,
        "severity": "page", "labels": {"team": "ops"}, "acknowledged": None, "silenced": None,
    }  # fmt: skip


def test_acknowledgements_and_the_end_of_the_silences_that_cover_it_now() -> None:
    looked = Acknowledgement(
        episode="e", alert="hot", key=("k1",), by="ci", comment="on my way", made=5, until=500
    )
    silences = [
        silence(200, alerts=("hot",)),
        silence(300, labels={"team": ("ops",)}),
        silence(400, severities=("info",)),
        silence(500, start=NOW + 1, alerts=("hot",)),
        silence(NOW, alerts=("hot",)),
    ]
    found, other = open_episodes(
        [event("e", "opened"), event("f", "opened", severity=None)], silences, [looked], NOW
    )
    assert found["acknowledged"] == {
        "episode": "e",
        "alert": "hot",
        "key": ["k1"],
        "key_times": [],
        "by": "ci",
        "comment": "on my way",
        "made": 5,
        "until": 500,
    }
    assert (found["silenced"], other["acknowledged"], other["silenced"]) == (300, None, 300)
    assert (
        open_episodes([event("e", "opened", alert="cold", labels={})], silences, [], NOW)[0]["silenced"]
        is None
    )

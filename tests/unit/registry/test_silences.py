"""Silences at the registry: what may be asked for, and how long it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import InputError, RefusedError
from tamis.messaging.silences import Acknowledgement, Silence
from tamis_registry.core import silences as core
from tamis_registry.core.errors import MissingError
from tamis_registry.core.registry import Registry
from tamis_registry.core.silences import (
    DAY,
    SECOND,
    AcknowledgedEpisode,
    Kept,
    Silences,
    Wanted,
    acknowledgement,
)
from tamis_registry.http.state.silences import Event, acknowledgement_document, chosen

NOW = 100 * DAY
HOT = AcknowledgedEpisode("e1", "hot", ("k", 5), (1,))


@pytest.fixture
def registry(fleet: Any) -> Registry:
    """A registry with the alert `hot`."""
    fleet.now = NOW
    fleet.sql("CREATE ALERT hot AS SELECT k FROM air WHERE v > 1")
    made: Registry = fleet.registry
    return made


def wanted(**more: Any) -> Wanted:
    plain: dict[str, Any] = {
        "alerts": None, "severities": None, "labels": {}, "keys": None, "start": None, "until": None,
        "seconds": None, "by": "me", "comment": "why",
    }  # fmt: skip
    return Wanted(**{**plain, **more})


def keep(registry: Registry, kept: Kept, now: int = NOW) -> Kept:
    made, change = registry.keep(kept)
    registry.done(change, now)
    return made


def test_a_silence_begins_now_and_lasts_for_what_was_asked(registry: Registry) -> None:
    catalog = registry.state.catalog
    made = wanted(alerts=["HOT"], labels={"team": ["a"]}, keys=[["k", 1]], seconds=1.5).silence(
        "i", catalog, NOW
    )
    assert made == Silence(
        id="i", start=NOW, until=NOW + 1_500_000, alerts=("hot",), labels={"team": ("a",)}, keys=(("k", 1),),
        by="me", comment="why", made=NOW,
    )  # fmt: skip
    later = wanted(severities=["page"], start=NOW + 5, until=NOW + 9).silence("i", catalog, NOW)
    assert (later.start, later.until, later.alerts, later.severities) == (NOW + 5, NOW + 9, None, ("page",))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"seconds": 1}, "without a condition"),
        ({"alerts": ["hot"]}, "needs an end"),
        ({"alerts": ["hot"], "seconds": 1, "until": NOW + 1}, "needs an end"),
        ({"alerts": ["hott"], "seconds": 1}, "did you mean 'hot'"),
        ({"alerts": [], "seconds": 1}, "empty list"),
        ({"labels": {"team": []}, "seconds": 1}, "labels.team"),
        ({"alerts": ["hot"], "until": NOW}, "over at once"),
        ({"alerts": ["hot"], "start": NOW + 5, "until": NOW + 5}, "over at once"),
        ({"alerts": ["hot"], "until": NOW + 30 * DAY + 1}, "30 days"),
        ({"alerts": ["hot"], "start": NOW + 31 * DAY, "seconds": 1}, "30 days"),
    ],
)
def test_what_covers_nothing_everything_or_no_time_is_refused(
    registry: Registry, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        wanted(**asked).silence("i", registry.state.catalog, NOW)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"severities": ["page", ""], "labels": {"team": ["ops", ""], "nobody": [""]}}, []),
        ({"severities": ["pgae"]}, ["no alert has the severity 'pgae'; did you mean 'page'?"]),
        ({"severities": ["x"]}, ["no alert has the severity 'x'; there are: info, page"]),
        ({"labels": {"taem": ["ops", "dev"]}}, ["no alert has a label 'taem'; did you mean 'team'?"]),
        ({"labels": {"team": ["ops", "dve"]}}, ["no alert has the label 'team=dve'; did you mean 'dev'?"]),
        (
            {"severities": ["pgae"], "labels": {"site": ["ops"]}},
            [
                "no alert has the severity 'pgae'; did you mean 'page'?",
                "no alert has the label 'site=ops'; there are: north",
            ],
        ),
    ],
)
def test_severities_and_labels_that_no_alert_has_are_named_with_the_nearest(
    fleet: Any, asked: dict[str, Any], found: list[str]
) -> None:
    fleet.sql(
        "CREATE ALERT a WITH (severity = 'page', labels = 'team=ops, site=north') AS SELECT k FROM air "
        "WHERE v > 1;"
        "CREATE ALERT b WITH (severity = 'info', labels = 'team=dev') AS SELECT k FROM air WHERE v > 1;"
    )
    catalog = fleet.registry.state.catalog
    assert list(core.doubts(wanted(seconds=9, **asked).silence("i", catalog, NOW), catalog)) == found


def test_in_a_fleet_without_labels_every_label_is_doubtful(registry: Registry) -> None:
    catalog = registry.state.catalog
    made = wanted(seconds=9, labels={"team": ["ops"]}).silence("i", catalog, NOW)
    assert list(core.doubts(made, catalog)) == ["no alert has a label 'team'; no alert has any"]


def test_silences_and_acknowledgements_are_kept_and_removed_when_nobody_needs_them(
    registry: Registry,
) -> None:
    version = registry.plan.version
    short = wanted(alerts=["hot"], seconds=10).silence("short", registry.state.catalog, NOW)
    long = wanted(alerts=["hot"], seconds=20).silence("long", registry.state.catalog, NOW)
    keep(registry, long)
    keep(registry, short)
    first = keep(registry, acknowledgement(AcknowledgedEpisode("e1"), "me", "", NOW))
    again = keep(registry, acknowledgement(HOT, "you", "mine", NOW + 1))
    assert isinstance(first, Acknowledgement) and isinstance(again, Acknowledgement)
    assert (again.episode, again.alert, again.key, again.key_times) == ("e1", "hot", ("k", 5), (1,))
    # A key is a part of readings, which not every token may see.
    shown, hidden = (acknowledgement_document(again, readings=may) for may in (True, False))
    assert (shown["alert"], shown["key"], shown["key_times"]) == ("hot", ["k", 5], [1])
    assert (hidden["alert"], hidden["key"], hidden["key_times"]) == ("hot", None, [])
    assert registry.silences.silences == [short, long] and registry.silences.acknowledgements == [again]
    gone: dict[bytes, int] = {}
    for now in range(NOW, NOW + 9 * DAY, DAY // 4):
        while change := registry.tick(now):
            assert change.plan is None or not change.silences
            gone |= dict.fromkeys(change.silences, now)
            registry.done(change, now)
    assert {key: now - NOW for key, now in gone.items()} == {
        b"silence/short": DAY + DAY // 4,
        b"silence/long": DAY + DAY // 4,
        b"acknowledgement/e1": 7 * DAY + DAY // 4,
    }
    assert registry.plan.version >= version


def test_one_that_is_removed_twice_is_missing(registry: Registry) -> None:
    made = keep(registry, wanted(alerts=["hot"], seconds=10).silence("i", registry.state.catalog, NOW))
    _, change = registry.forget(made.record_key)
    registry.done(change, NOW)
    assert registry.silences.silences == []
    with pytest.raises(MissingError, match="no silence 'i'"):
        registry.forget(made.record_key)


def test_there_are_not_too_many_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MOST", 2)
    one = [Silence(id=str(n), start=0, until=SECOND, made=0) for n in range(3)]
    kept = Silences({silence.record_key: silence for silence in one[:2]})
    with pytest.raises(RefusedError, match="2 already"):
        kept.added(one[2])
    assert kept.added(one[1]) == {b"silence/1": one[1]}
    assert kept.added(acknowledgement(AcknowledgedEpisode("e"), "", "", 0))


@pytest.mark.parametrize(
    ("beginning", "events", "complete", "found"),
    [
        ("ab", [("ab1", "open"), ("ab1", "opened"), ("ab2", "closed"), ("ab2", "opened")], True, "ab1"),
        ("ab", [("ab1", "opened")], False, "ab1"),
        ("ab", [("ab1", "opened"), ("ab2", "open")], True, "several open episodes begin with 'ab'"),
        ("ab", [("ab1", "closed"), ("ab1", "opened")], True, "'ab'; the episode has closed"),
        ("ab", [], True, "no open episode has an identity that begins with 'ab'"),
        ("ab", [], False, "no open episode has an identity that begins with 'ab'"),
        # It may be older than the events that were read.
        ("a" * 32, [], False, "a" * 32),
        ("a" * 32, [], True, "no open episode"),
    ],
)
def test_the_beginning_of_an_identity_stands_for_the_only_open_episode(
    beginning: str, events: list[tuple[str, str]], complete: bool, found: str
) -> None:
    read = [Event(AcknowledgedEpisode(identity, "hot", ("k",)), what) for identity, what in events]
    if " " not in found:
        # Of an episode that wasn't read, neither alert nor key is known.
        facts = ("hot", ("k",)) if events else (None, None)
        assert chosen(beginning, read, complete=complete) == AcknowledgedEpisode(found, *facts)
    else:
        with pytest.raises((InputError, MissingError), match=found):
            chosen(beginning, read, complete=complete)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"keys": [[10**30]]}, "int"),
        ({"keys": [[float("nan")]]}, "changes"),
        ({"keys": [[float("inf")]]}, "changes"),
        ({"keys": [[{"a": 1}]]}, "can't be written"),
        ({"keys": [["\ud800"]]}, "can't be written"),
        ({"alerts": ["hot"], "comment": "\ud800"}, "can't be written"),
        ({"keys": [["k" * 1000] * 70]}, "bytes"),
    ],
)
def test_what_can_t_be_read_again_is_not_written(registry: Registry, more: dict[str, Any], word: str) -> None:
    made = wanted(seconds=9, **more).silence("i", registry.state.catalog, NOW)
    with pytest.raises(InputError, match=word):
        registry.keep(made)
    assert registry.silences.silences == []
    for value in (2**63 - 1, -(2**63), 1e300, "ä😀", None, True):
        right = wanted(seconds=9, keys=[[value]]).silence("j", registry.state.catalog, NOW)
        assert keep(registry, right) == right

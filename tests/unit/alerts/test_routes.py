"""Routes: the first one that matches decides, or all up to one that doesn't go on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import InputError
from tamis_alerts.core.notifications import Route, is_routed
from tamis_alerts.settings import AlertsConfig, load_config
from tamis_alerts.sinks.notification import accepts

ROUTES = """
routes:
  - {severity: [page, critical], sinks: [pager], continue: true}
  - {labels: {team: ops}, sinks: [chat]}
  - {alerts: [hot], labels: {team: [dev, lab]}, sinks: [mail, chat]}
  - {sinks: [mail]}
"""


def load(tmp_path: Path, routes: str) -> AlertsConfig:
    path = tmp_path / "alerts.yaml"
    sinks = "".join(
        f"\n- {{kind: webhook, name: {name}, url: 'http://a.example'}}" for name in ("pager", "chat", "mail")
    )
    path.write_text(f"sinks:{sinks}\n{routes}")
    return load_config(path)


def event(severity: str | None, alert: str = "hot", **labels: str) -> dict[str, Any]:
    return {"alert": alert, "severity": severity, "labels": labels, "event": "opened"}


@pytest.mark.parametrize(
    ("episode", "sinks"),
    [
        (event("page", team="ops"), {"pager", "chat"}),
        (event("page"), {"pager", "mail"}),
        (event(None, team="ops"), {"chat"}),
        (event("info", team="lab"), {"mail", "chat"}),
        (event("info", alert="cold", team="lab"), {"mail"}),
    ],
)
def test_the_first_route_that_matches_decides_unless_it_goes_on(
    tmp_path: Path, episode: dict[str, Any], sinks: set[str]
) -> None:
    config = load(tmp_path, ROUTES)
    assert {s.name for s in config.sinks if accepts(s, episode, config.core_routes)} == sinks


def test_without_routes_every_sink_is_notified_and_its_own_alerts_count_with_them(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    assert all(accepts(sink, event(None), config.core_routes) for sink in config.sinks)
    sink = config.sinks[0].model_copy(update={"alerts": ["cold"]})
    assert not accepts(sink, event("page"), (Route(frozenset({"pager"})),))


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ("routes: [{sinks: [nobody]}]", "no sink is called 'nobody'; there are: chat, mail, pager"),
        ("routes: [{sinks: [pagr]}]", r"no sink is called 'pagr'; did you mean 'pager'\?"),
        (
            "routes: [{snks: [pager]}]",
            r"line 5: routes\.0\.snks: there is no such field; did you mean 'sinks'\?",
        ),
        ("routes: [{sinks: [pager, mail]}]", "none names the sink 'chat'"),
        ("routes:\n- {sinks: [pager]}\n- {sinks: [mail], severities: [a]}", "line 7: routes.1.severities"),
        ("routes: [{alerts: [hot]}]", "routes.0.sinks"),
    ],
)
def test_routes_that_lead_nowhere_are_refused(tmp_path: Path, routes: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(tmp_path, routes)


def test_routes_agree_with_a_walk_over_all_of_them() -> None:
    """The oracle collects the sinks of every route that is reached, then looks for each sink in them."""
    seeded = random.Random(18)
    for _ in range(2_000):
        routes = [
            Route(
                frozenset(seeded.sample(["a", "b", "c"], seeded.randint(0, 2))),
                seeded.choice([None, frozenset({"x"}), frozenset({"x", "y"})]),
                seeded.choice([None, frozenset({"page"}), frozenset({"", "info"})]),
                seeded.choice([{}, {"team": frozenset({"1"})}, {"team": frozenset({"1", "2"})}]),
                seeded.random() < 0.5,
            )
            for _ in range(seeded.randint(1, 4))
        ]
        labels = seeded.choice([{}, {"team": "1"}, {"team": "3"}])
        episode = event(seeded.choice([None, "page", "info"]), seeded.choice("xyz"), **labels)
        reached: set[str] = set()
        for route in routes:
            met = [
                route.alerts is None or episode["alert"] in route.alerts,
                route.severities is None or (episode["severity"] or "") in route.severities,
                *(labels.get(name, "") in wanted for name, wanted in route.labels.items()),
            ]
            if False not in met:
                reached |= route.sinks
                if not route.go_on:
                    break
        assert {sink for sink in "abc" if is_routed(routes, sink, episode)} == reached

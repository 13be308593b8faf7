"""Rolling upgrade: the services of an earlier commit are replaced one by one while readings arrive.

After an upgrade from a commit whose services can read the data of this version, they are replaced back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from tests.e2e.fed_fleet import FedFleet, judge, until
from tests.e2e.feeder import SECOND, PatientFeeder, close_alert, feeding, hot_alert, swell_alert
from tests.e2e.release_tree import NoCommitError, release_tree
from tests.integration.alerts.receiver import Receiver

from tamis.local.fleet import EdgeSpec
from tamis.local.service_process import free_ports
from tamis.messaging.topics import EPISODES, PART_PREFIX, PLANS
from tamis.plan.json_form import decode_plan, version_of
from tamis_alerts.core.rules import rules_of

# The order of docs/upgrade.md: a service is replaced before those whose records it reads.
ORDER = ("alerts", "joiner", "registry", "edge")


@dataclass(frozen=True)
class Base:
    """A commit from which docs/upgrade.md promises an upgrade. `via`: first to this one. `back`: and back to
    it, in reverse order.
    """

    commit: str
    via: str | None = None
    back: bool = False


# This release reads queries that keep synopses as nodes, and BETWEEN reads SQL, too.
BETWEEN = "219dbdf8"
BASES = (Base("1993841", via=BETWEEN), Base(BETWEEN, back=True))

SCALED = """
CREATE ALERT scaled WITH (gap = '10 seconds') AS
SELECT a.station, a.ts, a.temp * a.rh AS product FROM air a JOIN surface s
  ON a.station = s.station AND ABS(a.ts - s.ts) <= INTERVAL '5' SECOND
WHERE a.temp * a.rh - 50 * s.temp > 450;"""
PEAK_SECONDS = 10
# It keeps synopses. A reading that is posted twice doesn't change a maximum.
PEAKS = f"""
CREATE ALERT peaks AS
SELECT window_end, station, max(temp) AS peak FROM TUMBLE(air, ts, INTERVAL '{PEAK_SECONDS}' SECOND)
GROUP BY window_end, station HAVING max(temp) > 2;"""
# Its topic is its own, so that edges publish partial aggregates once all services are of this version. No two
# readings have the same temperature.
CRESTS = f"""
CREATE ALERT crests AS
SELECT window_end, count(DISTINCT temp) AS readings, count(*) AS n, max(temp) AS peak
FROM TUMBLE(air, ts, INTERVAL '{PEAK_SECONDS}' SECOND) GROUP BY window_end HAVING max(temp) > 0;"""
# Its streams are named: this version reads their parts of plans, and older ones whole plans.
EDGE = """
sources:
  - {{name: http, kind: http, streams: [air, surface]}}
http: {{port: {port}}}
"""
JOINS = {"warm": close_alert("warm", 9.0), "swell": swell_alert("swell", 10.0), "scaled": SCALED}


def replace(fed: FedFleet, name: str, environment: Mapping[str, str]) -> None:
    """Stop a service, and start it with other code."""
    process = fed.fleet.processes[name]
    assert process.stop() == 0, f"{name} did not stop cleanly"
    for variable in ("PYTHONPATH", "TAMIS_JARS"):
        process.environment.pop(variable, None)
    process.environment.update(environment)
    process.start()
    process.wait_ready(200)


def replace_all(
    fed: FedFleet, feeder: PatientFeeder, order: Sequence[str], environment: Mapping[str, str], added: str
) -> Mapping[str, int]:
    """Replace all services, and create the alert `added` by the new registry; returns its activation, once
    there are readings after it.
    """
    for name in order:
        replace(fed, name, environment)
        if name == "registry":
            fed.apply(close_alert(added, 7.0))
    since = fed.running(added)
    end = feeder.second + 100
    until(lambda: feeder.second > end, 300)
    return since


@pytest.mark.upgrade
@pytest.mark.timeout(900)  # several minutes where others want the cores too
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.commit)
def test_services_are_replaced_one_by_one_and_no_alarm_is_missed(base: Base, tmp_path: Path) -> None:
    try:
        old = release_tree(base.commit)
        between = None if base.via is None else release_tree(base.via)
    except NoCommitError as error:
        pytest.skip(f"no upgrade from {base.commit} is tested: {error}")
    receiver = Receiver()
    sinks = tmp_path / "alerts.yaml"
    sinks.write_text(f"sinks:\n  - {{kind: webhook, url: '{receiver.url}', timeout: 60}}\n")
    (port,) = free_ports(1)
    config = tmp_path / "edge.yaml"
    config.write_text(EDGE.format(port=port))
    fed = FedFleet(tmp_path / "fleet", old, sinks, [EdgeSpec("edge", config)])
    feeder = PatientFeeder(seed=11)
    added: dict[str, Mapping[str, int]] = {}
    try:
        feeder.url = f"http://127.0.0.1:{port}"
        fed.start("".join(JOINS.values()) + hot_alert("hot", 3.0) + PEAKS + CRESTS)
        with feeding(feeder):
            until(lambda: len(receiver.posted) > 10)
            # Notifications wait in the old service, and the new one delivers them.
            receiver.open.clear()
            waiting = len(fed.records(EPISODES)) + 10
            until(lambda: len(fed.records(EPISODES)) > waiting)
            if between is not None:
                replace(fed, "alerts", between)
                added["for_both"] = replace_all(fed, feeder, ORDER[1:], between, "for_both")
            replace(fed, "alerts", {})
            receiver.open.set()
            added["for_new"] = replace_all(fed, feeder, ORDER[1:], {}, "for_new")
            assert reads_parts(fed)
            until(lambda: has_partials(fed), 60)
            gaps = gaps_of(fed)
            if base.back:
                # The older release can't read plans with partial aggregates.
                fed.apply("DROP ALERT crests;")
                until(lambda: not has_partials(fed), 60)
                added["for_old"] = replace_all(fed, feeder, ORDER[::-1], old, "for_old")
        end = feeder.second
        feeder.close(end + 4_000)
        until(lambda: fed.passed(end + 3_900), 120)
        alarms = fed.alarms()
        until(lambda: all_closed(fed), 90)
        episodes = [orjson.loads(value) for value in fed.records(EPISODES)]
        gaps |= gaps_of(fed)
        until(lambda: wanted(episodes) <= notified(receiver), 60)
        assert fed.fleet.ended() is None
    finally:
        feeder.end()
        receiver.close()
        codes = fed.fleet.stop()
    assert codes == dict.fromkeys(codes, 0)
    compare_alarms(feeder, tmp_path, alarms, added)
    compare_episodes(alarms, episodes, gaps)


def reads_parts(fed: FedFleet) -> bool:
    """True if there are parts of plans, and this edge has not gone over to whole plans since it started."""
    parts = fed.records(f"{PART_PREFIX}air")
    _, _, said = fed.fleet.processes["edge"].log.read_text().rpartition("] started ")
    return bool(parts) and "reading whole plans" not in said


def gaps_of(fed: FedFleet) -> dict[str, int]:
    """The gap that ends an episode, by alert of the newest plan."""
    return {name: rule.gap for name, rule in rules_of(newest_plan(fed)).items()}


def has_partials(fed: FedFleet) -> bool:
    """True if the newest plan has partial aggregates of windows."""
    return any(topic.partials for stream in newest_plan(fed).streams for topic in stream.topics)


def compare_alarms(
    feeder: PatientFeeder,
    directory: Path,
    alarms: Mapping[str, list[dict[str, Any]]],
    added: Mapping[str, Mapping[str, int]],
) -> None:
    """No alarm is missed, none is extra, and none is there under two identities. `added`: activation of the
    alerts that were created later.
    """
    recordings = feeder.recordings(directory)
    for name, sql in JOINS.items():
        found = judge(sql, name, recordings, alarms[name], lambda a, _: np.ones(len(a), np.bool_))
        assert found.extra == 0, found
    for name, since in added.items():
        found = judge(
            close_alert(name, 7.0),
            name,
            recordings,
            alarms[name],
            lambda a, s, since=since: (a >= since["air"]) & (s >= since["surface"]),  # type: ignore[misc]
        )
        assert found.extra == 0, found
    hot = {(row["station"], row["ts"]) for row in feeder.posted["air"] if row["temp"] > 3.0}
    assert {(alarm["row"]["station"], alarm["row"]["ts"]) for alarm in alarms["hot"]} == hot
    raised = Counter(tuple(alarm["row"].values()) for alarm in alarms["peaks"])
    assert raised == peaks(feeder.posted["air"], raised)
    assert_crests(feeder, [alarm["row"] for alarm in alarms["crests"]])
    for name, several in alarms.items():
        if name not in ("peaks", "crests"):
            again = [same for same, ids in Counter(map(combination, several)).items() if ids > 1]
            assert not again, f"{name}: {again} have several ids"


def peaks(
    readings: Sequence[Mapping[str, Any]], raised: Mapping[tuple[Any, ...], int]
) -> Counter[tuple[Any, ...]]:
    """The rows of PEAKS, window by window, over all readings, up to the last window that was raised."""
    width = PEAK_SECONDS * SECOND
    most: dict[tuple[int, str], float] = {}
    for row in readings:
        window = (row["ts"] // width + 1) * width, row["station"]
        most[window] = max(most.get(window, row["temp"]), row["temp"])
    last = max(row[0] for row in raised)
    return Counter((end, station, peak) for (end, station), peak in most.items() if peak > 2 and end <= last)


def assert_crests(feeder: PatientFeeder, rows: Sequence[Mapping[str, Any]]) -> None:
    """Each window has all of its readings, each once; those that were posted again may be there twice."""
    width = PEAK_SECONDS * SECOND
    windows: dict[int, list[float]] = {}
    for reading in feeder.posted["air"]:
        windows.setdefault((reading["ts"] // width + 1) * width, []).append(reading["temp"])
    raised = Counter(row["window_end"] for row in rows)
    assert raised == {end: 1 for end in windows if end <= max(raised) and max(windows[end]) > 0}
    for row in rows:
        temps = windows[row["window_end"]]
        assert (row["readings"], row["peak"]) == (len(set(temps)), max(temps))
        assert row["n"] >= len(temps)
    assert sum(row["n"] - row["readings"] for row in rows) <= feeder.posted_again


def combination(alarm: Mapping[str, Any]) -> bytes:
    """The tuples and the window of an alarm, which say what it is."""
    return orjson.dumps([alarm["tuples"], alarm.get("window")], option=orjson.OPT_SORT_KEYS)


def compare_episodes(
    alarms: Mapping[str, list[dict[str, Any]]],
    episodes: Sequence[Mapping[str, Any]],
    gaps: Mapping[str, int],
) -> None:
    """Each event is written once, and the closed episodes are the runs of alarms within the gap."""
    for event in ("opened", "closed"):
        once = Counter(one["episode"] for one in episodes if one["event"] == event)
        assert once and max(once.values()) == 1, f"{event} is notified once for each episode"
    times: dict[str, set[int]] = {}
    for name, several in alarms.items():
        for alarm in several:
            times.setdefault(orjson.dumps([name, alarm["key"]]).decode(), set()).add(alarm["event_time"])
    closed: dict[str, list[tuple[int, int]]] = {}
    for one in episodes:
        if one["event"] == "closed":
            which = orjson.dumps([one["alert"], one["key"]]).decode()
            closed.setdefault(which, []).append((one["start"], one["end"]))
    assert closed.keys() == times.keys()
    for which, found in closed.items():
        runs = within_gap(sorted(times[which]), gaps[orjson.loads(which)[0]])
        # An episode that an alarm in between merged into another one was closed, too.
        whole = [one for one in set(found) if not any(inside(one, other) for other in set(found))]
        assert sorted(whole) == runs, which


def within_gap(times: Sequence[int], gap: int) -> list[tuple[int, int]]:
    """First and last time of each run of times that follow one another within `gap`."""
    runs = [(times[0], times[0])]
    for time_ in times[1:]:
        first, last = runs[-1]
        if time_ - last <= gap:
            runs[-1] = first, time_
        else:
            runs.append((time_, time_))
    return runs


def inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """True if an episode lies in another one."""
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def all_closed(fed: FedFleet) -> bool:
    """True if as many episodes are closed as were opened."""
    events = Counter(orjson.loads(value)["event"] for value in fed.records(EPISODES))
    return events["opened"] == events["closed"]


def newest_plan(fed: FedFleet) -> Any:
    """The plan that the fleet obeys."""
    return decode_plan(max(fed.records(PLANS), key=version_of))


def wanted(episodes: Sequence[Mapping[str, Any]]) -> set[str]:
    """The events of which a webhook hears."""
    return {f"{one['episode']}:{one['event']}" for one in episodes if one["event"] != "open"}


def notified(receiver: Receiver) -> set[str]:
    """The events of which the webhook has heard."""
    return {headers["idempotency-key"] for _, headers, _ in list(receiver.posted)}

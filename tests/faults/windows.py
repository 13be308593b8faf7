"""Window alerts whose rows spell the readings that they count, and the judge of these rows.

The sum of a row is a number to the base of 16: its digit at 16^s says how many readings with a time in a
second that ends in s the window has counted. So a reading that is lost or doubled changes a digit, and no two
errors hide each other. Edges send partial aggregates for these alerts (`docs/cuts.md`), since no other alert
of the tests has their filter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient

from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import STREAM_PREFIX

SECOND = 1_000_000
SIZE = 10  # seconds of a window, so that its seconds end in different digits
SLIDES = {"tumbled": 10, "hopped": 5}  # seconds, by alert

Reading = tuple[str, int]  # station, event time in microseconds
Window = tuple[str, str, int]  # alert, station, end in microseconds


def window_alerts(where: str) -> str:
    """A TUMBLE and a HOP of `air`, which share a topic."""
    calls = {
        "tumbled": f"TUMBLE(air, ts, INTERVAL '{SIZE}' SECOND)",
        "hopped": f"HOP(air, ts, INTERVAL '{SLIDES['hopped']}' SECOND, INTERVAL '{SIZE}' SECOND)",
    }
    return "".join(
        f"""
CREATE ALERT {name} AS
SELECT station, window_end, count(*) AS n, min(ts) AS first, max(ts) AS last,
  sum(power(16, extract(second FROM ts) % 10)) AS digits
FROM {call} WHERE {where} GROUP BY station, window_end;
"""
        for name, call in calls.items()
    )


@dataclass(frozen=True)
class WindowVerdict:
    """The windows whose rows aren't what the readings give, each with what is wrong."""

    windows: int
    readings: int  # counted in all rows of `tumbled`
    unsure: int  # readings that may count, and needn't
    missed: Sequence[Window]
    extra: Sequence[Window]
    doubled: Sequence[Window]  # rows with two identities, or an identity with two rows
    wrong: Mapping[Window, str]

    @property
    def right(self) -> bool:
        """True if every window has the row of its readings, once."""
        return not self.faults

    @property
    def faults(self) -> dict[Window, str]:
        """The windows that aren't right, and what is wrong."""
        others = {"missed": self.missed, "extra": self.extra, "doubled": self.doubled}
        return {window: said for said, windows in others.items() for window in windows} | dict(self.wrong)


def count_cuts(config: Mapping[str, Any]) -> int:
    """The number of records of cuts in the topics of `air`."""
    names = AdminClient(dict(config)).list_topics(timeout=30).topics
    topics = [name for name in names if name.startswith(f"{STREAM_PREFIX}air")]
    with TopicReader(dict(config), topics) as reader:
        return sum(b'"kind":"cut"' in (record.value or b"") for record in reader.snapshot())


def judge_windows(
    accepted: Iterable[Reading],
    perhaps: Iterable[Reading],
    alarms: Iterable[Mapping[str, Any]],
    passed: int,
) -> WindowVerdict:
    """Compare the rows of `window_alerts` with the readings: those that were `accepted` count as often as
    they are named, and those of `perhaps` (no answer came) at most as often. Both pass the
    filter of the alerts.
    `passed`: the event time in microseconds that the joiner has passed; later windows aren't judged.
    """
    least, most = _by_window(accepted), Counter(perhaps)
    unsure = sum(most.values())
    more = _by_window(most.elements())
    rows = _rows(alarms)
    due = {window for window in least.keys() | rows.keys() if window[2] <= passed}
    possible = {window: least[window] + more[window] for window in due}
    found = {window: rows[window] for window in due if rows[window]}
    wrong = {
        window: said
        for window, (row, *_) in found.items()
        if possible[window] and (said := _fault(row, least[window], possible[window]))
    }
    return WindowVerdict(
        windows=len(found),
        readings=sum(one["n"] for (alert, *_), (one, *_) in found.items() if alert == "tumbled"),
        unsure=unsure,
        missed=sorted(window for window in due if least[window] and window not in found),
        extra=sorted(window for window in found if not possible[window]),
        doubled=sorted(window for window, different in found.items() if len(different) > 1),
        wrong=wrong,
    )


def _by_window(readings: Iterable[Reading]) -> defaultdict[Window, Counter[int]]:
    """How often each event time counts, by window."""
    windows: defaultdict[Window, Counter[int]] = defaultdict(Counter)
    for (station, time), count in Counter(readings).items():
        for alert, slide in SLIDES.items():
            first = time // (slide * SECOND) + 1
            for end in range(first, first + SIZE // slide):
                windows[alert, station, end * slide * SECOND][time] += count
    return windows


def _rows(alarms: Iterable[Mapping[str, Any]]) -> defaultdict[Window, list[Mapping[str, Any]]]:
    """The different rows of each window. A record that comes again with identity and row is one of them."""
    rows: defaultdict[Window, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for alarm in alarms:
        if alarm["alert"] in SLIDES:
            row = alarm["row"]
            window = (alarm["alert"], str(row["station"]), int(row["window_end"]))
            rows[window][f"{alarm['id']} {sorted(row.items())}"] = row
    return defaultdict(list, {window: list(different.values()) for window, different in rows.items()})


def _fault(row: Mapping[str, Any], least: Counter[int], most: Counter[int]) -> str:
    """What is wrong with a row, or nothing. `least` and `most`: how often each event time counts."""
    digits = [int(row["digits"]) >> 4 * second & 15 for second in range(SIZE)]
    for second, digit in enumerate(digits):
        low, high = (
            sum(count for time, count in counts.items() if time // SECOND % SIZE == second)
            for counts in (least, most)
        )
        if not low <= digit <= high:
            times = sorted(time for time in most if time // SECOND % SIZE == second)
            return f"{digit} readings of {times}, not {low} to {high}: {dict(row)}"
    if row["n"] != sum(digits):
        return f"the count isn't that of the digits {digits}: {dict(row)}"
    first, last = int(row["first"]), int(row["last"])
    if not (first in most and last in most and all(first <= time <= last for time in least)):
        return f"first and last aren't those of {sorted(most)}: {dict(row)}"
    return ""

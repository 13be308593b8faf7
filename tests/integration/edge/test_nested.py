"""Readings that are costly to parse, and those with numbers that JSON doesn't have, beside usual readings."""

from __future__ import annotations

import threading
import time
from collections import Counter

import orjson
from tests.integration.edges import Bench, RunningEdge, everything, wait_for
from tests.unit.edge.plans import TOPIC

from tamis.messaging.topics import ACKS, DEAD_LETTERS

T0 = 1_700_000_000_000_000
MIB = 2**20
HTTP = "sources:\n  - {kind: http, name: http}\n"

# Bodies of 14 MiB, of which each kept all other senders waiting for seconds.
DEEP = b"[" * 900 + b"]" * 900
WIDE = b"[" + b"[]," * 5_000 + b"1]"
COSTLY = {
    "deep items": b"[" + b",".join([DEEP] * (14 * MIB // 1801)) + b"]",
    "wide items": b"[" + b",".join([b'{"x":%s}' % WIDE] * (14 * MIB // 15_020)) + b"]",
    "wide lines": b"\n".join([b'{"x":%s}' % WIDE] * (14 * MIB // 15_020)),
    "lines that are not JSON": b"\n".join([b'{"x":%s' % WIDE] * (14 * MIB // 15_020)),
    "one deep item": b"[" + b"[" * (7 * MIB) + b"]" * (7 * MIB) + b"]",
    "empty lines": b"\n" * (14 * MIB),
    "objects": b"[" + b",".join([b'{"a":{}}'] * 99_000) + b"]",
    "one key again and again": b'[{"temp":1},{' + b'"temp":[],' * 80_000 + b'"ts":1}]',
}


def _note_slowest(edge: RunningEdge, until: threading.Event, into: list[float]) -> None:
    """Note the longest time in which a reading was answered, in seconds."""
    longest, i = 0.0, 0
    while not until.is_set():
        start = time.monotonic()
        assert edge.post("air", {"station": "s", "ts": T0 + i, "temp": 1.0}).status_code == 202
        longest, i = max(longest, time.monotonic() - start), i + 1
    into.append(longest)


def test_costly_readings_do_not_keep_other_senders_waiting(bench: Bench) -> None:
    bench.publish(everything("air:h/http"))
    edge = bench.edge("h", HTTP).start()
    found: dict[str, float] = {}
    # The first large body waits for the kernels, where they were not compiled ahead of time.
    dead = edge.post("air", b"[" + b",".join([b"{}"] * 20_000) + b"]").json()["accepted"]
    quiet = list[float]()
    done = threading.Event()
    threading.Timer(5, done.set).start()
    _note_slowest(edge, done, quiet)
    for name, body in COSTLY.items():
        done, longest = threading.Event(), list[float]()
        other = threading.Thread(target=_note_slowest, args=(edge, done, longest))
        other.start()
        answer = edge.post("air", body)
        assert answer.status_code in (202, 400, 413), name
        dead += answer.json().get("accepted", 0)
        least = dead
        wait_for(
            "the dead letters",
            lambda: edge.metric("tamis_edge_tuples_total", decision="dead") >= least,  # noqa: B023
        )
        done.set()
        other.join()
        found[name] = longest[0]
    # Other tests may run on this machine, and slow both down.
    assert max(found.values()) < 2 + 2 * quiet[0], (found, quiet)


def test_a_number_that_is_not_finite_is_a_dead_letter_in_every_source(bench: Bench) -> None:
    """Its neighbours come through, and it keeps its bytes."""
    bench.publish(everything("air:h/http", "air:raw/0", "air:h/csv", "air:h/ndjson"))
    bench.create(["raw"], 1)
    good = b'{"station": "s", "ts": %d, "temp": %d}'
    bad = [good.replace(b"%d}", text) % T0 for text in (b"NaN}", b"-Infinity}", b"nan}", b"1e999}")]
    unused = good.replace(b"}", b', "other": NaN}')
    csv = bench.directory / "air.csv"
    csv.write_text(
        f"station,ts,temp,other\ns,{T0},NaN,1\ns,{T0 + 1},1,NaN\ns,{T0 + 2},-inf,1\ns,{T0 + 3},1e999,1\n"
    )
    lines = bench.directory / "air.ndjson"
    lines.write_bytes(b"\n".join([good % (T0, 1), *bad, unused % (T0 + 1, 1), good % (T0 + 2, 1)]))
    config = HTTP + (
        "  - {kind: kafka, name: k, stream: air, topic: raw}\n"
        f"  - {{kind: file, name: csv, stream: air, path: {csv}}}\n"
        f"  - {{kind: file, name: ndjson, stream: air, path: {lines}}}\n"
    )
    reader = bench.reader(TOPIC, ACKS, DEAD_LETTERS)
    edge = bench.edge("h", config).start()
    bench.produce("raw", [(0, one) for one in (good % (T0, 1), *bad, unused % (T0 + 1, 1))])
    array = b"[%s,%s,%s]" % (good % (T0, 1), b",".join(bad), unused % (T0 + 1, 1))
    assert edge.post("air", array).json() == {"accepted": 6}
    assert edge.post("air", b"\n".join([good % (T0 + 2, 1), *bad])).json() == {"accepted": 5}
    assert edge.post("air", bad[0]).json() == {"accepted": 1}

    def letters() -> Counter[tuple[str, str]]:
        found = [m for m in reader.read() if m.topic == DEAD_LETTERS]
        assert {m.headers["reason"] for m in found} <= {"nan"}
        return Counter((m.headers["source.topic"], m.value.decode()) for m in found)

    wait_for("the dead letters", lambda: letters().total() == 4 + 4 + 9 + 3)
    for one in bad:
        assert letters()["raw", one.decode()] == letters()[str(lines), one.decode()] == 1
        assert letters()["/v1/streams/air", one.decode()] == (3 if one is bad[0] else 2)
    wait_for("the others", lambda: len(reader.of("tuple")) == 2 + 1 + 3 + 3)
    assert {orjson.dumps(m.tuple["temp"]) for m in reader.of("tuple")} == {b"1.0"}

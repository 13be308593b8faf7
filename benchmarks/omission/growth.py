"""Cost of omission by the number of tuples and of keys, and the tuples that the stream form keeps."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks import plots
from benchmarks.harness import BUDGET, Cell, Result, Say, medians
from benchmarks.omission.streams import BATCH, Ints, Stream, stream_form, walks, watermarks
from tamis.omission import retained_by_key

NAME = "omission.growth"
INTERVAL = 100
TUPLES = (10_000, 100_000, 1_000_000, 10_000_000)
KEYS = (1, 10, 100, 1_000, 10_000, 100_000)
COLUMNS = (
    "tuples",
    "keys",
    "kernel",
    "stream form",
    "kernel, tuples/s",
    "stream form, tuples/s",
    "retained per interval",
    "most tuples kept",
    "kept per key",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    repeats = 1 if quick else 5
    random = np.random.default_rng(1)
    tuples, keys = (TUPLES[:2], KEYS[:3]) if quick else (TUPLES, KEYS)
    cases = [(n, k) for k in (1, 100) for n in tuples] + [(tuples[-1], k) for k in keys if k not in {1, 100}]
    say("compiling")
    _row(walks(1_000, 10, random), 10, 1)
    rows = []
    for n, k in cases:
        say(f"{n:,} tuples, {k:,} keys")
        rows.append({"tuples": n, "keys": k} | _row(walks(n, k, random), k, repeats))
    return Result(
        NAME,
        "Cost as it grows",
        COLUMNS,
        rows,
        {"interval": INTERVAL, "repeats": repeats, "batch": BATCH, "sides": "both", "quick": quick},
        (
            f"kernel, stream form: CPU seconds for all tuples on one core, median of {repeats} runs; the two"
            " methods alternate",
            f"a method that takes more than {BUDGET:.0f} s (the stream form with very many keys) runs once",
            "each key has the values of a random walk; the tuples of the keys alternate",
            f"an omission interval has {INTERVAL} tuples of each key; the stream form gets batches of"
            f" {BATCH:,}",
            "most tuples kept: the most undecided tuples and brackets that the stream form keeps between two"
            " batches; for all keys together",
        ),
        publish=lambda: plots.growth(rows),
    )


def _row(stream: Stream, keys: int, repeats: int) -> dict[str, Cell]:
    tuples = len(stream.times)
    marks = watermarks(stream.times)
    most = stream_form(stream, INTERVAL, marks)[1]
    found = medians(
        {"kernel": partial(_kernel, stream), "stream form": partial(_published, stream, marks)}, repeats
    )
    (kernel, kept), (streaming, also_kept) = found["kernel"], found["stream form"]
    if kept != also_kept:
        raise AssertionError(f"the kernel retains {kept} tuples, the stream form {also_kept}")
    return {
        "kernel": kernel,
        "stream form": streaming,
        "kernel, tuples/s": round(tuples / kernel),
        "stream form, tuples/s": round(tuples / streaming),
        "retained per interval": kept / (tuples / INTERVAL),
        "most tuples kept": most,
        "kept per key": most / keys,
    }


def _kernel(stream: Stream) -> int:
    return int(retained_by_key(stream.codes, stream.times, stream.values, INTERVAL).sum())


def _published(stream: Stream, marks: Ints) -> int:
    return len(stream_form(stream, INTERVAL, marks)[0])

"""Streams for the benchmarks of omission (cai-2021, section 6.2), and the stream form over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.local.demo_check import RECORDING
from tamis.omission import OmissionState

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Rows of a batch of the stream form: what an edge takes at a time unless it is told otherwise.
BATCH = 10_000
END = 2**63 - 1


@dataclass(frozen=True)
class Stream:
    """Tuples in order of arrival. `codes`: their keys, numbered."""

    times: Ints
    values: Floats
    codes: Ints

    def arriving(self, order: Ints) -> Stream:
        """The same tuples in another order."""
        return Stream(self.times[order], self.values[order], self.codes[order])


def of_one_key(times: Ints, values: Floats) -> Stream:
    """Tuples that all have the same key."""
    return Stream(times, values, np.zeros(len(times), np.int64))


def s_unif(tuples: int, random: np.random.Generator) -> Stream:
    """Times drawn without replacement, one in ten ticks; independent uniform values."""
    return of_one_key(_drawn(tuples, random), random.random(tuples))


def s_wiener(tuples: int, random: np.random.Generator) -> Stream:
    """Times as those of `s_unif`; values of a Wiener process at these times."""
    times = _drawn(tuples, random)
    return of_one_key(times, _wiener(times, random))


def gamma_wiener(tuples: int, gap: int, random: np.random.Generator) -> Stream:
    """Times a gamma distributed step apart, `gap` ticks on average; values of a Wiener process at them. (The
    paper doesn't say which shape; 2 here: less even than a beat, more even than chance.)
    """
    times = np.cumsum(np.rint(random.gamma(2.0, gap / 2, tuples)).astype(np.int64))
    return of_one_key(times, _wiener(times, random))


def walks(tuples: int, keys: int, random: np.random.Generator) -> Stream:
    """A random walk of every key, one tuple a tick each, the keys in rotation."""
    steps = tuples // keys
    values = np.cumsum(random.normal(size=(steps, keys)), axis=0)
    return Stream(np.repeat(np.arange(steps), keys), values.ravel(), np.tile(np.arange(keys), steps))


def readings() -> dict[str, Stream]:
    """Real readings of four motes, one in five seconds, which is the tick; a stream for each quantity."""
    table = np.loadtxt(RECORDING, delimiter=",", skiprows=1)
    number, mote = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    return {
        "humidity": Stream(number, table[:, 3], mote),
        "temperature": Stream(number, table[:, 4], mote),
    }


def arrival(times: Ints, sigma: float, random: np.random.Generator) -> Ints:
    """The order in which tuples arrive when each is late by Gaussian noise of `sigma` ticks."""
    return np.argsort(times + random.normal(0.0, sigma, len(times)), kind="stable")


def _drawn(tuples: int, random: np.random.Generator) -> Ints:
    return np.sort(random.choice(10 * tuples, tuples, replace=False))


def _wiener(times: Ints, random: np.random.Generator) -> Floats:
    values: Floats = np.cumsum(random.normal(size=len(times)) * np.sqrt(np.diff(times, prepend=times[0])))
    return values


def watermarks(times: Ints) -> Ints:
    """Behind each batch the least time that is still to come: the best that any watermark could be."""
    to_come = np.minimum.accumulate(times[::-1])[::-1]
    ends = np.arange(BATCH, len(times) + BATCH, BATCH)
    return np.append(to_come, END)[np.minimum(ends, len(times))]


def stream_form(stream: Stream, interval: int, marks: Ints) -> tuple[Ints, int]:
    """The stream form batch by batch with the given watermarks: which tuples it publishes, ascending, and the
    most that it keeps between two batches, undecided ones and brackets.
    """
    state = OmissionState(interval)
    published, most = [], 0
    for number, mark in enumerate(marks):
        part = slice(number * BATCH, (number + 1) * BATCH)
        times = stream.times[part]
        ids = np.arange(number * BATCH, number * BATCH + len(times))
        state.offer(stream.codes[part], times, stream.values[part], ids, 0)
        published.append(state.decide(int(mark), 0).published)
        most = max(most, state.size())
    return np.sort(np.concatenate(published)), most

"""Metrics of one service as Prometheus collectors; a name or label outside the catalogue is an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from tamis.telemetry.metric_catalogue import CATALOGUE, LATENCY_BUCKETS


class Metrics:
    """All metrics of `service`, in a registry of their own: tests run several services in one process."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU, open files and start time: process_*
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._labels: dict[str, set[tuple[str, ...]]] = {}  # of each gauge, the values of its label sets
        self._set_now: dict[str, set[tuple[str, ...]]] = {}  # those that were set since `replacing` began
        for metric in CATALOGUE:
            if metric.service not in (service, "all"):
                continue
            family = metric.name, metric.help, metric.labels
            if metric.kind == "counter":
                self._counters[metric.name] = Counter(*family, registry=self.registry)
            elif metric.kind == "gauge":
                self._gauges[metric.name] = Gauge(*family, registry=self.registry)
                self._labels[metric.name] = set()
            else:
                histogram = Histogram(*family, registry=self.registry, buckets=LATENCY_BUCKETS)
                self._histograms[metric.name] = histogram
        self.set("tamis_build_info", 1, service=service, version=version("tamis"))

    def inc(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add `amount` to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        if not labels:
            gauge.set(value)
            return
        gauge.labels(**labels).set(value)
        values = tuple(labels[label] for label in gauge._labelnames)
        self._labels[name].add(values)
        if name in self._set_now:
            self._set_now[name].add(values)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Count one observation in a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)

    def observe_many(self, name: str, values: npt.NDArray[np.float64], **labels: str) -> None:
        """Count many observations with the same labels in a histogram; none may be NaN."""
        histogram = self._histograms[name]
        child = histogram.labels(**labels) if labels else histogram
        # The client library only takes single values, which costs more per tuple than publishing it.
        first = np.searchsorted(child._upper_bounds, values)
        counts = np.bincount(first, minlength=len(child._upper_bounds)).tolist()
        child._sum.inc(float(values.sum()))
        for bucket, count in zip(child._buckets, counts, strict=True):
            bucket.inc(count)

    @contextmanager
    def replacing(self, *names: str) -> Iterator[None]:
        """Remove the label sets of these gauges that the block does not set, for example those of streams
        that no longer exist. They are removed at the end of the block and the others keep their old values
        until they are set: a scrape during the block finds no gap.
        """
        for name in names:
            self._set_now[name] = set()
        try:
            yield
            for name in names:
                for values in self._labels[name] - self._set_now[name]:
                    self._gauges[name].remove(*values)
                self._labels[name] = set(self._set_now[name])
        finally:
            for name in names:
                del self._set_now[name]

    def exposition(self) -> bytes:
        """The text for a scrape by Prometheus."""
        return generate_latest(self.registry)

"""The catalogue's metrics of one service as Prometheus collectors; a name or label that isn't in the
catalogue is an error.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tamis.telemetry.catalogue import CATALOGUE


class Metrics:
    """All metrics of `service` in a registry of their own, so that tests can have several services in one
    process.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in CATALOGUE:
            if metric.service not in (service, "all"):
                continue
            if metric.kind == "counter":
                self._counters[metric.name] = Counter(
                    metric.name, metric.help, metric.labels, registry=self.registry
                )
            elif metric.kind == "gauge":
                self._gauges[metric.name] = Gauge(
                    metric.name, metric.help, metric.labels, registry=self.registry
                )
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name, metric.help, metric.labels, registry=self.registry, buckets=metric.buckets
                )
        self.set("tamis_build_info", 1, service=service, version=version("tamis"))

    def inc(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add `amount` to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Count one observation in a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)

    def observe_many(self, name: str, values: npt.NDArray[np.float64], **labels: str) -> None:
        """Count many observations of the same labels in a histogram; not NaN."""
        histogram = self._histograms[name]
        child = histogram.labels(**labels) if labels else histogram
        # The client takes them one by one only, for more than it takes to publish a tuple each.
        first = np.searchsorted(child._upper_bounds, values)
        counts = np.bincount(first, minlength=len(child._upper_bounds)).tolist()
        child._sum.inc(float(values.sum()))
        for bucket, count in zip(child._buckets, counts, strict=True):
            bucket.inc(count)

    def clear(self, name: str) -> None:
        """Forget all label sets of a gauge, so that what is gone doesn't stay on show."""
        self._gauges[name].clear()

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)

"""Scrape of a service's metrics, in the text format of Prometheus."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

# A new client for each request would read the certificates of all authorities, which takes 35 ms.
_CLIENT = httpx.Client(timeout=5, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


class Scrape:
    """The samples of one service at one time."""

    def __init__(self, text: str) -> None:
        self._samples = [s for family in text_string_to_metric_families(text) for s in family.samples]

    @staticmethod
    def of(base_url: str) -> Scrape:
        """The current samples of the service at `base_url`."""
        return Scrape(_CLIENT.get(f"{base_url}/metrics").raise_for_status().text)

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of a metric that have these labels."""
        return sum(s.value for s in self._samples if s.name == name and labels.items() <= s.labels.items())

    def by(self, name: str, label: str) -> dict[str, float]:
        """Sums of a metric by the values of one label."""
        sums: dict[str, float] = {}
        for s in self._samples:
            if s.name == name and label in s.labels:
                sums[s.labels[label]] = sums.get(s.labels[label], 0.0) + s.value
        return sums

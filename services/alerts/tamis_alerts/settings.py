"""Configuration of the sinks: a YAML file, each mistake reported with its line."""

from __future__ import annotations

import ssl
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator

from tamis.settings.yaml_file import Referred, Secret, read_yaml
from tamis.web.tls import client_context

# The name of the log as a sink.
LOG = "log"


# The addresses of many webhooks are secrets, so that they may be references, and are not shown.
Url = Annotated[HttpUrl, Referred]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    url: Annotated[Url, Field(repr=False)]
    token: Secret | None = None  # sent as `Authorization: Bearer`
    ca: Path | None = None  # PEM file of the authority that signed the receiver's certificate
    # Name of its consumer group, in metrics and in logs; the kind where it isn't given.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,50}$")] = ""
    alerts: list[str] | None = None  # the alerts that it gets; all where not given
    timeout: Annotated[float, Field(gt=0, le=600)] = (
        5.0  # seconds of one attempt, from connecting to its answer
    )
    # About 20 minutes, with waits of up to 30 s: a receiver that is away for ten of them loses nothing.
    attempts: Annotated[int, Field(ge=1)] = 100
    give_up_after: Annotated[float, Field(gt=0)] = (
        3600.0  # no new attempt for an episode's event older than this
    )
    parallel: Annotated[int, Field(ge=1, le=100)] = (
        8  # notifications of different keys that are sent at a time
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, values: object) -> object:
        if isinstance(values, dict) and "name" not in values and "kind" in values:
            return {**values, "name": values["kind"]}
        return values

    def wants(self, alert: str) -> bool:
        """True if the episodes of an alert go to this sink."""
        return self.alerts is None or alert in self.alerts


class Webhook(_Part):
    """POST of each episode as JSON; `secret` signs it (HMAC-SHA256 of the body, header
    `X-Tamis-Signature`).
    """

    kind: Literal["webhook"]
    secret: Secret | None = None


class Alertmanager(_Part):
    """Prometheus Alertmanager, API v2. Its `url` is its base, without /api/v2."""

    kind: Literal["alertmanager"]


Sink = Webhook | Alertmanager


class AlertsConfig(BaseModel):
    """The whole configuration. The log is a sink even if it isn't configured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sinks: list[Annotated[Sink, Field(discriminator="kind")]] = []

    @model_validator(mode="after")
    def _different_names(self) -> Self:
        for name, times in Counter([LOG, *(sink.name for sink in self.sinks)]).items():
            if times > 1:
                raise ValueError(
                    f"{times} sinks are called {name!r}: give each a different name"
                    + (f" ({LOG!r} is the log's)" if name == LOG else "")
                )
        return self


def load_config(path: Path | None) -> AlertsConfig:
    """The configuration in a YAML file; without a file, only the log. Raises InputError if the file has a
    mistake.
    """
    if path is None:
        return AlertsConfig()
    config = read_yaml(path, AlertsConfig, "services/alerts/example.yaml")
    sinks = [
        sink if sink.ca is None else sink.model_copy(update={"ca": path.parent / sink.ca})
        for sink in config.sinks
    ]
    for sink in sinks:
        sink_context(sink, f"{path}: ")
    return config.model_copy(update={"sinks": sinks})


def sink_context(sink: Sink, file: str = "") -> ssl.SSLContext | None:
    """The TLS context for a sink with an authority of its own; None for other sinks.

    Raises InputError if its file can't be used; `file` is the beginning of the message.
    """
    if sink.ca is None:
        return None
    return client_context(sink.ca, where=f"{file}sink {sink.name!r}: ca")

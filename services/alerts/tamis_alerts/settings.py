"""Configuration of the alerts service: a YAML file, each mistake reported with its line."""

from __future__ import annotations

import ssl
from collections import Counter
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator

from tamis.settings.yaml_file import read_yaml
from tamis.web.tls import client_context
from tamis.wording.names import suggest
from tamis_alerts.core.notifications import Route
from tamis_alerts.sink_settings import LOG, Sink


class RouteConfig(BaseModel):
    """Sinks of the episodes that meet all conditions; `continue: true` also looks at the routes after it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sinks: list[str]
    """Names of the sinks."""
    alerts: list[str] | None = None
    """Alerts that match. All where not given."""
    severity: str | list[str] | None = None
    """Severities that match: one, or a list. All where not given."""
    labels: dict[str, str | list[str]] = {}
    """Label: the value, or a list of values, that it must have."""
    go_on: Annotated[bool, Field(alias="continue")] = False
    """`true` looks at the routes after it, too."""

    def core(self) -> Route:
        """The route as the sinks use it."""
        severity = None if self.severity is None else _set(self.severity)
        alerts = None if self.alerts is None else frozenset(self.alerts)
        labels = {name: _set(values) for name, values in self.labels.items()}
        return Route(frozenset(self.sinks), alerts, severity, labels, self.go_on)


def _set(values: str | list[str]) -> frozenset[str]:
    return frozenset([values] if isinstance(values, str) else values)


class AlertsConfig(BaseModel):
    """The whole configuration. The log is a sink even if it isn't configured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sinks: list[Annotated[Sink, Field(discriminator="kind")]] = []

    routes: list[RouteConfig] = []
    """Routes in their order. The first one that matches decides, or all up to one without `continue`.
    Without routes, every sink is notified of every episode.
    """

    console: HttpUrl | None = None
    """Address at which people open the console, such as `https://tamis.example.com`. With it, notifications
    have a link to the page of their alert.
    """

    @property
    def console_address(self) -> str | None:
        """The address of the console as a text."""
        return None if self.console is None else str(self.console)

    @property
    def core_routes(self) -> tuple[Route, ...]:
        """The routes as the sinks use them."""
        return tuple(route.core() for route in self.routes)

    @model_validator(mode="after")
    def _routes_lead_to_sinks(self) -> Self:
        if not self.routes:
            return self
        known = {sink.name for sink in self.sinks}
        named = {name for route in self.routes for name in route.sinks}
        if unknown := sorted(named - known):
            hint = suggest(unknown[0], known, f"there are: {', '.join(sorted(known))}")
            raise ValueError(f"routes: no sink is called {unknown[0]!r}; {hint}")
        if idle := sorted(known - named):
            raise ValueError(
                f"routes: none names the sink {idle[0]!r}, which would never be notified: add a route"
            )
        return self

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
        if sink.ca is not None:
            sink_context(sink, f"{path}: ")
    return config.model_copy(update={"sinks": sinks})


def sink_context(sink: Sink, file: str = "") -> ssl.SSLContext:
    """The TLS context for a sink, which trusts its own authority or else those of the system.

    Raises InputError if its file can't be used; `file` is the beginning of the message.
    """
    return client_context(sink.ca, where=f"{file}sink {sink.name!r}: ca")

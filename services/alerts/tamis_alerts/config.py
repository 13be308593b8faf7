"""Where notifications go: a YAML file, each mistake named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl

from tamis.settings.file import Secret, read_yaml


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    alerts: list[str] | None = None  # only these; all where not given
    timeout: Annotated[float, Field(gt=0)] = 5.0  # seconds of one attempt
    attempts: Annotated[int, Field(ge=1)] = 6

    def wants(self, alert: str) -> bool:
        """Whether an alert's episodes go here."""
        return self.alerts is None or alert in self.alerts


class Webhook(_Part):
    """POST of each episode as JSON; `secret` signs it (HMAC-SHA256 of the body, header
    `X-Tamis-Signature`).
    """

    kind: Literal["webhook"]
    url: HttpUrl
    secret: Secret | None = None


class Alertmanager(_Part):
    """Prometheus Alertmanager, API v2."""

    kind: Literal["alertmanager"]
    url: HttpUrl  # its base, without /api/v2


class AlertsConfig(BaseModel):
    """All of it; episodes always go to the log too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sinks: list[Annotated[Webhook | Alertmanager, Field(discriminator="kind")]] = []


def load_config(path: Path | None) -> AlertsConfig:
    """The configuration of a YAML file; without one, the log alone. Raises InputError for what is wrong."""
    if path is None:
        return AlertsConfig()
    return read_yaml(path, AlertsConfig, "services/alerts/example.yaml")

"""Where notifications go: a YAML file, each mistake named with its field."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, HttpUrl, SecretStr, ValidationError

from tamis.errors import InputError


def _from_environment(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("${") or not value.endswith("}"):
        raise ValueError("a secret is not written here: write ${NAME} and set that environment variable")
    if value[2:-1] not in os.environ:
        raise ValueError(f"the environment variable {value[2:-1]} is not set")
    return os.environ[value[2:-1]]


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
    secret: Annotated[SecretStr, BeforeValidator(_from_environment)] | None = None


class Alertmanager(_Part):
    """Prometheus Alertmanager, API v2."""

    kind: Literal["alertmanager"]
    url: HttpUrl  # its base, without /api/v2


class AlertsConfig(BaseModel):
    """All of it; episodes always go to the log too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sinks: list[Annotated[Webhook | Alertmanager, Field(discriminator="kind")]] = []


def load_config(path: Path | None) -> AlertsConfig:
    """The configuration of a YAML file; without one, the log alone."""
    if path is None:
        return AlertsConfig()
    try:
        return AlertsConfig.model_validate(yaml.safe_load(path.read_text()) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from error
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        hint = "services/alerts/example.yaml shows every field"
        raise InputError("\n".join(faults), where=str(path), hint=hint) from None
